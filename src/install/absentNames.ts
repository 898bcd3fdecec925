// Names of PyTorch that do not exist here, in its spelling: what to write instead, or that there is nothing yet.
import { OTHER_LIBRARIES, all } from './otherLibraries.ts'
import type { Reasons } from './otherLibraries.ts'

const DEVICES = "leave it out, or import tensorfx/webgpu and say x.to('webgpu'), torch.randn([2], { device: 'webgpu' }) for the graphics card"
const NO_COMPLEX = 'this part of complex numbers is not here yet'
const NO_QUANTIZED = "there are no quantized tensors here yet; model.to('float16') and model.to('bfloat16') halve the memory of weights"
const NO_SPARSE = 'there are no sparse tensors here yet; use dense ones'
const OTHER_AUTOCAST =
  "write torch.autocast({ dtype: 'bfloat16', enabled, cacheEnabled }, fn); torch.isAutocastEnabled() and torch.getAutocastDtype() tell"
const NO_SCRIPT = "there is no TorchScript here: compile(model) of 'tensorfx' makes a model fast, fx.symbolicTrace(model) gives its graph"
const NO_STORAGES = 'memory belongs to tensors, there are no storages here: write torch.tensor(data)'
const NO_THREADS =
  "operators run one after the other; torch.setNumThreads says how many threads share one, and 'tensorfx/distributed' runs a program on several"
const DETERMINISTIC = 'leave it out, as all operators are deterministic here'
const BY_DTYPE = 'write torch.tensor(data, { dtype })'
const NO_FORMAT = 'a memory format is a text here, such as x.contiguous({ memoryFormat: "channels_last" })'
const DISTRIBUTED = "import from 'tensorfx/distributed'"

/** By namespace. */
const ABSENT = {
  torch: {
    // What has another place.
    compile: "write import { compile } from 'tensorfx'",
    fx: "write import { fx } from 'tensorfx'",
    webgpu: "write import 'tensorfx/webgpu', which adds it",
    func: "import from 'tensorfx/func'",
    vmap: "import { vmap } from 'tensorfx/func'",
    functional: 'its functions are members of torch itself: torch.einsum',
    random: 'its functions are members of torch itself: torch.manualSeed(0)',
    return_types: 'operators with several results return arrays',
    overrides: "import from 'tensorfx/dispatch'",
    _dynamo: "import from 'tensorfx/compile'",
    compiler: "import from 'tensorfx/compile'",
    export: "fx.symbolicTrace(model) and makeFx of 'tensorfx/aot' capture graphs",
    save: "await saveCheckpoint(path, { model, optimizer }) of 'tensorfx/checkpoint' saves a training, and writeSafetensors(model.stateDict()) of 'tensorfx/interop' gives the bytes of a file of weights",
    load: "await loadCheckpoint(path, { model, optimizer }) of 'tensorfx/checkpoint' loads what saveCheckpoint saved; loadTorchFile(path) and loadSafetensors(path) of 'tensorfx/interop' give a state dict for model.loadStateDict",
    serialization: "import from 'tensorfx/interop'",
    package: "toFolder(graphModule, directory) of 'tensorfx/interop' writes code and weights",
    hub: "there is no list of models to download: loadTorchFile(path) and loadSafetensors(path) of 'tensorfx/interop' read weights that you have",
    onnx: "toOnnx(graphModule) of 'tensorfx/interop/onnx' gives the bytes of a file",
    utils: "checkpoint is in 'tensorfx/autograd', pytree in 'tensorfx/pytree'; DataLoader and datasets are in 'tensorfx/data'",
    profiler: "write import { profile } from 'tensorfx/debug': profile(fn).keyAverages().table()",
    multiprocessing: "runRanks of 'tensorfx/distributed' runs a program on several threads or processes",
    futures: 'write a Promise',
    fork: 'write a Promise',
    wait: 'write await',
    ...all(DISTRIBUTED, 'distributed'),
    distributions: "import from 'tensorfx/distributions'",
    quasirandom: 'there are no quasirandom sequences here yet',
    nested: 'there are no nested tensors here yet: pad the rows, or nn.utils.rnn.packSequence packs them',
    // Devices and backends.
    ...all(DEVICES, 'cuda device cpu mps xpu mtia accelerator get_device set_default_device get_default_device Stream Event'),
    ...all(
      `its settings concern libraries of PyTorch; leave it out`,
      'has_cuda has_cudnn has_lapack has_mkl has_mkldnn has_mps has_openmp has_spectral is_vulkan_available compiled_with_cxx11_abi set_float32_matmul_precision get_float32_matmul_precision set_flush_denormal',
    ),
    ...all(
      OTHER_AUTOCAST,
      'set_autocast_enabled is_autocast_cpu_enabled set_autocast_cpu_enabled get_autocast_cpu_dtype set_autocast_cpu_dtype get_autocast_gpu_dtype set_autocast_gpu_dtype set_autocast_cache_enabled',
    ),
    ...all(NO_THREADS, 'get_num_interop_threads set_num_interop_threads'),
    ...all(DETERMINISTIC, 'get_deterministic_debug_mode set_deterministic_debug_mode is_deterministic_algorithms_warn_only_enabled'),
    // Kinds of tensors.
    ...all(NO_COMPLEX, 'view_as_complex_copy view_as_real_copy is_conj eig chalf complex32'),
    ...all(
      NO_QUANTIZED,
      'quantization ao quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel dequantize int_repr q_scale q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_lstm quantized_gru quantized_lstm_cell quantized_gru_cell quantized_rnn_relu_cell quantized_rnn_tanh_cell fake_quantize_per_tensor_affine fake_quantize_per_channel_affine fused_moving_avg_obs_fake_quant choose_qparams_optimized empty_quantized per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_affine_float_qparams per_channel_symmetric qscheme qint8 qint32 quint8 quint4x2 quint2x4',
    ),
    ...all(
      NO_SPARSE,
      'sparse sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor smm spmm dsmm hsmm hspmm saddmm sspaddmm resize_as_sparse_',
    ),
    ...all('all tensors are strided; leave it out', 'layout strided'),
    ...all(NO_FORMAT, 'memory_format channels_last channels_last_3d contiguous_format preserve_format legacy_contiguous_format'),
    ...all(
      NO_STORAGES,
      'storage Storage UntypedStorage TypedStorage StorageBase is_storage FloatStorage DoubleStorage HalfStorage BFloat16Storage ByteStorage CharStorage ShortStorage IntStorage LongStorage BoolStorage ComplexFloatStorage ComplexDoubleStorage QInt8Storage QUInt8Storage QInt32Storage QUInt4x2Storage QUInt2x4Storage',
    ),
    ...all(BY_DTYPE, 'DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor BoolTensor'),
    FloatTensor: "write torch.tensor(data, { dtype: 'float32' })",
    LongTensor: "write torch.tensor(data, { dtype: 'int64' })",
    // What a value has itself.
    from_numpy: 'torch.tensor(typedArray) copies a typed array',
    frombuffer: 'torch.tensor(typedArray) copies a typed array',
    ...all('torch.tensor(typedArray) and x.toTypedArray() copy the values; x.transfer() is for workers', 'from_dlpack to_dlpack'),
    from_file: 'read the bytes of the file: torch.tensor(new Float32Array(bytes.buffer))',
    numel: 'x.numel is a property',
    Size: 'a shape is an array of numbers',
    dtype: "a dtype is a text: 'float32'",
    is_nonzero: 'write x.item() !== 0',
    is_same_size: 'write x.shape.join() === y.shape.join()',
    is_signed: 'write torch.iinfo(x.dtype).min < 0',
    ...all('tensors made in inference mode are like others here', 'is_inference'),
    typename: 'write x.dtype, or x.constructor.name',
    version: "write import { VERSION } from 'tensorfx'",
    is_inference_mode_enabled: 'write !torch.isGradEnabled()',
    ...all('a warning is printed once; leave it out', 'set_warn_always is_warn_always_enabled'),
    ...all("write setDefaultDtype: torch.setDefaultDtype('float64')", 'set_default_tensor_type'),
    ...all('write torch.manualSeed(seed)', 'seed initial_seed default_generator'),
    ...all('printing has no options here yet', 'set_printoptions get_printoptions'),
    ...all("detectAnomaly and setDetectAnomaly are in 'tensorfx/autograd'", 'is_anomaly_enabled set_anomaly_enabled is_anomaly_check_nan_enabled'),
    ...all('write Math.PI', 'pi'),
    ...all('write Math.E', 'e'),
    ...all('write Infinity', 'inf'),
    ...all('write NaN', 'nan'),
    range: 'PyTorch has deprecated it, as its end is included: write torch.arange(start, end)',
    // What PyTorch itself has taken out or has only for its own use.
    solve: 'write torch.linalg.solve(a, b)',
    lstsq: 'write torch.linalg.lstsq(a, b)',
    symeig: 'write torch.linalg.eigh(x)',
    matrix_rank: 'write torch.linalg.matrixRank(x)',
    lobpcg: 'write torch.linalg.eigh(x)',
    nuclear_norm: "write torch.linalg.matrixNorm(x, 'nuc')",
    frobenius_norm: 'write torch.linalg.matrixNorm(x)',
    binomial: 'there is no binomial distribution here yet',
    segment_reduce: 'there is no segment_reduce here yet: x.scatterReduce adds by index',
    ...all('named dimensions do not exist here', 'align_tensors'),
    ...all('the layers are members of nn: new nn.LSTM(…)', 'lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_relu_cell rnn_tanh_cell'),
    ...all(
      'the function is a member of nn.functional',
      'affine_grid_generator alpha_dropout_ binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout_ embedding_bag feature_alpha_dropout_ feature_dropout_ hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss triplet_margin_loss convolution',
    ),
    ...all(
      NO_SCRIPT,
      'jit ScriptModule ScriptFunction ScriptMethod ScriptObject ScriptClass LiteScriptModule CompilationUnit FunctionSchema JITException parse_ir parse_schema import_ir_module import_ir_module_from_buffer',
    ),
    // Other packages, which go with PyTorch.
    ...all("images and their transforms are in 'tensorfx/vision', models and their weights in 'tensorfx/models'", 'vision torchvision'),
    ...all('there is no such package here', 'audio torchaudio text torchtext'),
  },
  nn: {
    SyncBatchNorm: 'there is no SyncBatchNorm here yet: under DistributedDataParallel each rank has the statistics of its own batch',
    DataParallel: "there is one graphics card at most: DistributedDataParallel of 'tensorfx/distributed' trains on several ranks",
    parallel: "DistributedDataParallel is in 'tensorfx/distributed'",
    NLLLoss2d: 'write nn.NLLLoss',
    Container: 'write nn.Module',
    RNNBase: 'write nn.RNN, nn.LSTM or nn.GRU',
    RNNCellBase: 'write nn.RNNCell, nn.LSTMCell or nn.GRUCell',
    parameter: 'its classes are members of nn itself: nn.Parameter',
    modules: 'its classes are members of nn itself: nn.Linear',
    attention: 'nn.functional.scaledDotProductAttention computes attention; it has one implementation',
    grad: 'torch.autograd.grad gives the gradients of any function',
    ...all(NO_QUANTIZED, 'quantized quantizable qat intrinsic'),
  },
  optim: {
    lr_scheduler: 'schedules are members of optim itself: torch.optim.StepLR',
    swa_utils: "write import { swaUtils } from 'tensorfx/optim'",
    SparseAdam: 'there are no sparse gradients here; write optim.Adam',
  },
  linalg: { ...all(NO_COMPLEX, 'eig eigvals'), LinAlgError: 'errors of a matrix are instances of ArgumentError', matmul: 'write torch.matmul' },
  autograd: {
    Variable: 'a tensor is its own variable; write torch.tensor(data, { requiresGrad: true })',
    ...all('write torch.noGrad(() => …)', 'no_grad enable_grad set_grad_enabled inference_mode grad_mode'),
    functional: "write import { functional } from 'tensorfx/autograd'",
    ...all("write import { detectAnomaly } from 'tensorfx/autograd'", 'detect_anomaly set_detect_anomaly'),
    ...all("write import { gradcheck } from 'tensorfx/autograd'", 'gradcheck gradgradcheck'),
    profiler: "write import { profile } from 'tensorfx/debug': profile(fn).keyAverages().table()",
    ...all("import from 'tensorfx/autograd' or 'tensorfx/func'", 'forward_ad graph'),
  },
} satisfies Readonly<Record<string, Reasons>>

/** What to write instead of names that PyTorch has in `torch`, `torch.nn` and so on, or that other libraries have. */
export const absentNames = (namespace: keyof typeof ABSENT): ReadonlyMap<string, string> => {
  const others: Readonly<Record<string, Reasons>> = OTHER_LIBRARIES
  return new Map(Object.entries<string>({ ...others[namespace], ...ABSENT[namespace] }))
}
