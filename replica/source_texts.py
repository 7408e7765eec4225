"""Made-up source texts of submissions, as large as the real ones."""

from __future__ import annotations

from random import Random


class SourceTexts:
    """Made-up submissions: snippets in the manner of Python and CUDA, put together to a wanted size."""

    def __init__(self, seed: int) -> None:
        chance = Random(f"{seed}/code")
        names = ["tile", "acc", "smem", "stride", "block", "warp", "lane", "scale", "frag", "mask", "offs", "out"]
        forms = [
            "    {0} = {1}[{2}] * {3} + {4}\n",
            "    for (int {0} = 0; {0} < {3}; ++{0}) {{ {1}[{0}] += {2}; }}\n",
            "@triton.jit\ndef {0}_{3}({1}, {2}, BLOCK: tl.constexpr):\n",
            "    tl.store({0} + {1}, {2}, mask={4} < {3})\n",
            "# {0} keeps {1} in {2}\n",
            "    __syncthreads();  // {0}\n",
        ]
        self._snippets = [
            "".join(
                chance.choice(forms).format(*chance.sample(names, 3), chance.randrange(4096), chance.choice(names))
                for _ in range(12)
            )
            for _ in range(199)
        ]
        self._mean = sum(map(len, self._snippets)) / len(self._snippets)

    def text(self, chance: Random, code_id: int, size: int) -> str:
        """A text of about `size` characters, from half as much to half as much again."""
        count = max(1, int(size * chance.uniform(0.5, 1.5) / self._mean))
        return f"#!POPCORN leaderboard {code_id}\nimport torch\n" + "".join(chance.choices(self._snippets, k=count))
