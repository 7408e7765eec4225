"""SOL-ExecBench: saved answers of its public leaderboard in, tables of the contract out."""
