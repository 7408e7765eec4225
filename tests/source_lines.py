"""Lines of code, each labelled: it proves a trait, with the value it gives or None, or it only looks like it."""

from __future__ import annotations

# Trait: lines that prove it, each with the value; lines that look like it and do not.
LABELLED: dict[str, tuple[list[tuple[str, str | None]], list[str]]] = {
    "tma": (
        [
            (
                'asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0];");',
                None,
            ),
            ("desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[64, 64])", None),
            ("use_tma = True", None),
            ("using Schedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;", None),
            ("__constant__ CUtensorMap map_a;", None),
            ('asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;");', None),
        ],
        [
            'asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1};");',
            "softmax_out = row_max - tmax",
            "fltmap = build_filter(batch)",
            "ltma8 = 4",
            "use_tma: bool = False",
            '{"USE_TMA": False, "x": 1}',
        ],
    ),
    "wgmma": (
        [
            ('asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0}, %1, %2;");', None),
            ("warpgroup_arrive();", None),
            ("using Atom = SM90_64x128x16_F32F16F16_SS<Major::K, Major::K>;", None),
        ],
        [
            "wmma::load_matrix_sync(a_frag, a, 16);",
            'asm("mma.sync.aligned.m16n8k16");',
            "sigmma_total = 0",
            "SM90_TMA_LOAD copy;",
        ],
    ),
    "tcgen05": (
        [
            ('asm volatile("tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;");', None),
            ("acc = tmem_alloc(128)", None),
            ("auto atom = SM100_MMA_F16BF16_SS<a, b, c, 128, 256>{};", None),
            ("from cutlass.cute.nvgpu import cpasync, tcgen05", None),
        ],
        ["items = summary(tmems)", "wgmma_fence();", "mma.sync.aligned", "lumma = gumma + 1"],
    ),
    "mma": (
        [
            ('asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0};");', None),
            ("nvcuda::wmma::mma_sync(c_frag, a_frag, b_frag, c_frag);", None),
            ("auto tiled_mma = make_tiled_mma(SM80_16x8x16_F32BF16BF16F32_TN{});", None),
            ("using TiledMma = decltype(mma);", None),
        ],
        [
            "gamma = beta * comma",
            "#include <mma.h>",
            'asm volatile("tcgen05.mma.cta_group::1 [%0];");',
            "y = __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, 0, 0, 0);",
            "warpgroup_mma(c, a, b);",
        ],
    ),
    "mfma": (
        [
            ("acc = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(a, b, acc, 0, 0, 0);", None),
            ("triton.Config({'matrix_instr_nonkdim': 16}, num_stages=2)", None),
            ('asm volatile("v_mfma_f32_16x16x32_bf16 %0, %1, %2, %0");', None),
        ],
        [
            "fma = fmaf(a, b, c);",
            "mfmatrix = load()",
            "wmma::fragment<wmma::matrix_a, 16, 16, 16, half> a;",
            "mma.sync",
        ],
    ),
    "warp-specialization": (
        [
            ("for k in tl.range(0, K, BLOCK_K, warp_specialize=True):", None),
            ("if (warp_id == producer_warp) {", None),
            ('asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");', None),
            ("using Kernel = KernelTmaWarpSpecializedPingpong;", None),
        ],
        [
            "for k in tl.range(0, K, BLOCK_K, warp_specialize=False):",
            "specialized = torch.compile(model)",
            "warp_special = lane == 0",
            "a non-warp-specialized kernel = x",
        ],
    ),
    "split-k": (
        [
            ("SPLIT_K = 8", None),
            ("partial = splitk_gemm(a, b)", None),
            ("grid = (m * n, split_k)", None),
            ("kernel.set(SplitKSerial, slices);", None),
        ],
        ["SPLIT_K = 1", "split_keys(x)", "parts = x.split(k)", "split_kv = 4", '{"SPLIT_K": 1, "x": 2}'],
    ),
    "persistent-kernel": (
        [
            ("def matmul_kernel_persistent(a_ptr, b_ptr):", None),
            ("persistent_kernel<<<num_sms, 256>>>(args);", None),
            ("scheduler = utils.StaticPersistentTileScheduler.create(params)", None),
            ("for tile in tl.range(start, tiles, NUM_SMS):", None),
        ],
        [
            'self.register_buffer("scale", scale, persistent=False)',
            "kernel = non_persistent(x)",
            "a non-persistent kernel = y",
            "persistent_id = 3",
        ],
    ),
    "async-copy": (
        [
            ('asm volatile("cp.async.cg.shared.global [%0], [%1], 16;");', None),
            ("__pipeline_memcpy_async(dst, src, 16);", None),
            ("cuda::memcpy_async(group, smem, gmem, bytes);", None),
            ("llvm_amdgcn_raw_buffer_load_lds(rsrc, lds, 16, offset, 0, 0, 0);", None),
        ],
        [
            'asm volatile("cp.async.bulk.commit_group;");',
            "cudaMemcpyAsync(dst, src, n, cudaMemcpyDeviceToHost, stream);",
            "copy_async_result = 1",
            "await async_gather(x)",
        ],
    ),
    "stages": (
        [
            ("triton.Config({'BLOCK_M': 64}, num_stages=3, num_warps=8)", "3"),
            ("constexpr int kStages = 4;", "4"),
            ("#define NUM_STAGES 5", "5"),
            ("num_stages: int = 2,", "2"),
            ('{"num_stages": 6}', "6"),
            ('options["num_stages"] = 4', "4"),
            ("constexpr int kStages{3};", "3"),
        ],
        [
            "if num_stages == 3:",
            "num_stages = max_stages - 2",
            "stage = 0",
            "num_stages=NUM_STAGES,",
            "stages = 2 * depth",
            "num_warps, num_stages = 4, 3",
            "bool deep = kStages = 4 && x;",
            "num_stages = 4 if deep else 2",
        ],
    ),
    "num-warps": (
        [
            ("kernel[grid](x, num_warps=4)", "4"),
            ("constexpr int NUM_WARPS = 8;", "8"),
            ("#define WARPS_PER_BLOCK 16 // all of them", "16"),
            ("num_warps: tl.constexpr = 2,", "2"),
            ("kernel[grid](x, num_warps=(8))", "8"),
        ],
        [
            "num_warps = block // 32",
            "if num_warps >= 4:",
            "num_warps=num_warps,",
            "warp_size = 32",
            "NUM_WARPS == 4",
            "num_warps, num_stages = 4, 3",
            "num_warps = 4 or warps",
        ],
    ),
    "tile-m": (
        [
            ("BLOCK_M: tl.constexpr = 128", "128"),
            ("BLOCK_SIZE_M=64,", "64"),
            ("static constexpr int kBlockM = 256;", "256"),
            ("mma_tiler_mn = (128, 256)", "128"),
            ("using TileShape = Shape<_128, _256, _64>;", "128"),
            ("#define BM 32", "32"),
            ('{"BLOCK_M": 16}', "16"),
            ("BLOCK_M, BLOCK_N, BLOCK_K = 128, 64, 32", "128"),
            ("constexpr unsigned BLOCK_M = 128u;", "128"),
            ("#define BLOCK_M (64)", "64"),
            ('def kernel(a, BLOCK_M: "tl.constexpr" = 32):', "32"),
            ("BM, BN = 16, 8", "16"),
        ],
        [
            "if BLOCK_M == 128:",
            "BLOCK_M = 2 * size",
            "block_max = 7",
            "BM = M // 4",
            "ALBUM = 9",
            "BLOCK_N = 64",
            "int t = big ? BLOCK_M : 64;",
            "int t = big ? BM : 64;",
            "#define BLOCK_M (64 + PAD)",
            "#define BLOCK_M (64) * 2",
            "y = x[BLOCK_M:128]",
        ],
    ),
    "tile-n": (
        [
            ("BLOCK_N: tl.constexpr = 128", "128"),
            ("triton.Config({'BLOCK_SIZE_N': 32})", "32"),
            ("mma_tiler_mn = (128, 256)", "256"),
            ("using TileShape_MNK = cute::Shape<cute::_128, cute::_64, cute::_32>;", "64"),
            ("const int BN = 96;", "96"),
            ("BLOCK_SIZE_M, BLOCK_SIZE_N = 128, 64", "64"),
            ("BM, BN, BK = 16, 8, 4", "8"),
        ],
        [
            "BLOCK_N = N",
            "block_num = 4",
            "BLOCK_M = 64",
            "BLOCK_N >= 16",
            "BLOCK_N = 128 // 2 if small else 3 ** BN",
            "BLOCK_M, BLOCK_N = 128, width",
        ],
    ),
    "tile-k": (
        [
            ("BLOCK_K = 64", "64"),
            ("tile_k: int = 128", "128"),
            ("mma_tiler_mnk = (128, 256, 64)", "64"),
            ("using TileShape = Shape<_128, _256, _32>;", "32"),
            ("#define BLOCK_K 16 /* deep */", "16"),
            ("BLOCK_M, BLOCK_N, BLOCK_K = 128, 64, 32", "32"),
            ("TILE_M, TILE_N, TILE_K = 4, 8, 12", "12"),
        ],
        [
            "BLOCK_K = K",
            "block_keys = 4",
            "mma_tiler_mn = (128, 256)",
            "BLOCK_K != 64",
            "top_k = 8",
            "BLOCK_M, BLOCK_N, BLOCK_K = 128, 64, 2 * depth",
        ],
    ),
    "vector-width": (
        [
            ("float4 v = reinterpret_cast<const float4*>(x)[i];", "4"),
            ('asm("ld.global.nc.v4.f32 {%0,%1,%2,%3}, [%4];");', "4"),
            ("constexpr int VEC_SIZE = 8;", "8"),
            ("half2 h = __hmul2(a, b);", "2"),
            ("__nv_bfloat162 x; auto y = bfloat16x4(x);", "4"),
            ("*reinterpret_cast<int4*>(p) = v;", "4"),
            ("double2 pair = x[i];", "2"),
        ],
        [
            "w = quantize_int4(w)",
            "float4_e2m1fn_x2 = torch.uint8",
            "float32 = torch.float32",
            "vec = torch.zeros(8)",
            "y = uint8(x)",
            "double pair[2];",
        ],
    ),
    "shared-memory": (
        [
            ("__shared__ float tile[32][33];", None),
            ("extern __shared__ char buffer[];", None),
            ("smem = utils.SmemAllocator()", None),
            ('asm("ld.shared.b32 %0, [%1];");', None),
        ],
        [
            "from multiprocessing import shared_memory",
            "shared = weights.share()",
            "memory = torch.cuda.memory_allocated()",
            "x = smemory_count",
        ],
    ),
    "large-smem": (
        [
            ("cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024);", None),
            ("hipFuncSetAttribute(k, hipFuncAttributeMaxDynamicSharedMemorySize, bytes);", None),
            ("kernel.max_dynamic_shared_size_bytes = 98304", None),
            ("limit = props.sharedMemPerBlockOptin;", None),
        ],
        [
            "__shared__ float a[64];",
            "kernel<<<grid, block, smem>>>(x);",
            "max_dynamic_rows = 8",
            "limit = props.sharedMemPerBlock;",
        ],
    ),
    "mbarrier": (
        [
            ('asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;");', None),
            ("cute.arch.mbarrier_wait(bar, phase)", None),
            ("cutlass::arch::ClusterTransactionBarrier full[4];", None),
        ],
        ["__syncthreads();", "dist.barrier()", "numbar = 3", 'asm("bar.sync 0;");'],
    ),
    "cluster": (
        [
            ("__global__ void __cluster_dims__(2, 1, 1) kernel() {}", None),
            ("cluster_shape_mn = (2, 1)", None),
            ("auto cluster = cg::this_cluster();", None),
            ("kernel[grid](x, num_ctas=2)", None),
            ("using ClusterShape = Shape<_2, _1, _1>;", None),
        ],
        [
            "cluster_shape_mn = (1, 1)",
            'asm("cp.async.bulk.tensor.2d.shared::cluster.global [%0], [%1];");',
            "num_ctas=1,",
            "clusters = kmeans(x)",
            "using ClusterShape = Shape<_1, _1, _1>;",
            "__global__ void __cluster_dims__(1, 1, 1) kernel() {}",
        ],
    ),
    "fused-epilogue": (
        [
            ("def gemm_fused_epilogue(a, b, bias):", None),
            ("epilogue_op = lambda x: x * silu(gate)", None),
            ("using Fusion = cutlass::epilogue::fusion::LinCombEltAct<cutlass::epilogue::thread::SiLu, half>;", None),
            ('x = "SwiGLU is fused into the epilogue"', None),
        ],
        ["epilogue_warps = 4", "epilogue = default_epilogue", "fused_moe(x)", "epilogue_op=None,"],
    ),
    "fp8": (
        [
            ("x = x.to(torch.float8_e4m3fn)", None),
            ("acc = tl.dot(a.to(tl.float8e5), b)", None),
            ("__nv_fp8_e4m3 v;", None),
            ("def fp8_gemm(a, b):", None),
        ],
        [
            "fp80 = 3",
            "x = x.to(torch.float16)",
            "cfp8x = 1",
            "offset = float80",
            "use_fp8 = False",
        ],
    ),
    "fp4": (
        [
            ("def nvfp4_gemv(a, b, sfa, sfb):", None),
            ("a = a.view(torch.float4_e2m1fn_x2)", None),
            ('"""MXFP4 mixture of experts"""', None),
            ("mma = tcgen05.MmaMXF4NVF4Op(cutlass.Float4E2M1FN)", None),
        ],
        [
            "fp40 = 1",
            "float4 v = x[i];",
            "cfp4x = 3",
            "fp8 = x",
            '{"use_fp4": False}',
        ],
    ),
    "autotune": (
        [
            ("@triton.autotune(configs=configs, key=['M', 'N'])", None),
            ("configs = [triton.Config({'BLOCK_M': 64})]", None),
            ("model = torch.compile(f, mode='max-autotune')", None),
            ("@helion.kernel(autotune_effort='full')", None),
        ],
        ["@helion.kernel(autotune_effort='none')", "autotune=False,", "x = auto_tuned", "config = Config(8)"],
    ),
    "inline-ptx": (
        [
            ('asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));', None),
            ('y = tl.inline_asm_elementwise("cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h", [x], tl.uint32, True, 1)', None),
            ('__asm__ __volatile__("fence.proxy.async;");', None),
        ],
        ['asm volatile("s_waitcnt vmcnt(0)");', "plasma(x)", "asm_text = 3", "chasm(volatile)"],
    ),
    "online-softmax": (
        [
            ("def online_softmax(x, m, l):", None),
            ("alpha = tl.math.exp2(m_i - m_ij)", None),
            ("struct OnlineSoftmax {};", None),
        ],
        ["p = torch.softmax(x, dim=-1)", "m_i = tl.max(x)", "softmax = F.softmax", "m_i - mean"],
    ),
    "helion": (
        [("import helion", None), ("@helion.kernel(config=cfg)", None), ("from helion import Config", None)],
        ["hl = helionics()", "theme = heliotrope", "import helium", "helion_name = 3"],
    ),
    "cute-dsl": (
        [
            ("import cutlass.cute as cute", None),
            ("@cute.kernel", None),
            ("from cutlass import cute", None),
            ("kernel = cute.compile(host, a, b)", None),
        ],
        ["#include <cute/tensor.hpp>", "using namespace cute;", "acute.kernel(x)", "cute::gemm(mma, a, b, c);"],
    ),
    "hip": (
        [
            ("#include <hip/hip_runtime.h>", None),
            ("hipLaunchKernelGGL(k, grid, block, 0, stream, x);", None),
            ("x = __builtin_amdgcn_readfirstlane(x);", None),
            ("hipStream_t s = at::hip::getCurrentHIPStream();", None),
        ],
        ["if torch.version.hip:", "ship = hips + chip", "cudaStream_t s;", "shipment = 3"],
    ),
}
