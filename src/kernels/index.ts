// Kernels: loops over memory, built as a small IR and emitted as WebAssembly. Nothing here knows a tensor. Each room imports those above it in this list, and schedules no emitter.
//
//   numbers/    dtypes, and what JavaScript computes for them: rounding, conversion, special functions
//   engine/     how kernels may compute: relaxed SIMD, strict code, accuracy
//   wasm/       an assembler, vector code, and functions in SIMD; it knows no loop IR
//   scalars/    the table of scalar operations, one record for each. Begin at commonOps.ts to add one
//   ir/         the loop IR: loopIr.ts builds kernels (with an example), print.ts is their text, verify.ts the specification, reference.ts an interpreter
//   memory/     the heap, its budget, the blocks of tensors, and what a full heap says
//   schedules/  kernels for products, convolutions, attention and resampling, as loop IR
//   emit/       loop IR as WebAssembly
//   threads/    kernels in parts that threads share, and the pool of workers
//   wgsl/       loop IR as shaders; imported by its path, so that programs without WebGPU do not carry it
//   c/          loop IR as C, with the bits of WebAssembly; imported by its path, by the room native
//   run/        kernels compiled, cached and called
export {
  DTYPES,
  accumulationType,
  complexDType,
  dtypeInfo,
  isComplexDType,
  isDType,
  isNarrow,
  kindRank,
  promoteTypes,
  realDType,
} from './numbers/dtype.ts'
export type {
  ComplexDType,
  ComputeDType,
  DType,
  DTypeInfo,
  DTypeKind,
  ElementValue,
  RealDType,
  StorageArray,
  StorageArrayConstructor,
  TypedArray,
} from './numbers/dtype.ts'
export { readElement, readNumber, sameBytes, writeElement } from './numbers/elements.ts'
export { KernelError } from './ir/errors.ts'
export {
  accumulate,
  assign,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  declareArray,
  element,
  forLoop,
  serialLoops,
  identityOf,
  iota,
  load,
  local,
  localArray,
  lookup,
  loopVar,
  read,
  reduceLanes,
  scalar,
  scratch,
  setElement,
  numberType,
  scalarParam,
  sizeOf,
  sizeParam,
  store,
} from './ir/loopIr.ts'
export type { Grid } from './ir/grid.ts'
export type {
  AccumulateStmt,
  ArrayIndex,
  ArrayPlace,
  AssignStmt,
  BufferParam,
  CallExpr,
  CastExpr,
  Combine,
  ConstExpr,
  DeclareArrayStmt,
  DeclareStmt,
  DerivedSize,
  ElementExpr,
  LookupExpr,
  Expr,
  ForStmt,
  Index,
  IotaExpr,
  Kernel,
  LoadExpr,
  Local,
  LocalArray,
  LocalExpr,
  LoopMode,
  LoopVar,
  Memory,
  Param,
  ReduceLanesExpr,
  ScalarExpr,
  ScalarParam,
  Scratch,
  SetElementStmt,
  Size,
  SizeExpr,
  SizeParam,
  Stmt,
  StoreStmt,
  Variable,
} from './ir/loopIr.ts'
export { copyBytes } from './run/copyBytes.ts'
export { roundedDown, roundedUp, sizeDifference, sizeProduct, sizeSum } from './ir/sizes.ts'
export { scratchBytes } from './ir/scratchLayout.ts'
export { from as indexFrom } from './schedules/notation.ts'
export { SPAN_ALIGN, placeSpans } from './memory/spans.ts'
export { scalarOperation } from './scalars/scalarOps.ts'
export { scalarOps } from './scalars/rareOps.ts'
export type { ScalarOp } from './scalars/scalarOps.ts'
export type { ScalarOpRecord } from './scalars/scalarOpRecord.ts'
export { isCostly } from './ir/analysis.ts'
export { rounded } from './numbers/numbers.ts'
export { printKernel } from './ir/print.ts'
export { verifyKernel } from './ir/verify.ts'
export { runReference } from './ir/reference.ts'
export type { ReferenceArgs } from './ir/reference.ts'
export { BoundedCache, cacheSizes, kernelBytes, kernelsByCall, kernelsByLiterals } from './run/boundedCache.ts'
export type { CacheSize, CompiledKernel } from './run/boundedCache.ts'
export { areDeterministicAlgorithmsEnabled, backends, useDeterministicAlgorithms } from './engine/backends.ts'
export { currentEmitter, machineEngine } from './engine/machineCode.ts'
export { PerEngine, computingKey, currentAccuracy, currentComputing, isStrict, setStrict, withComputing, withStrict } from './engine/computing.ts'
export type { Accuracy, ComputedBy, Computing, Emitter, EngineName } from './engine/computing.ts'
export { currentEngine, engineFor, hasRelaxedSimd, processEngine, relaxedSetting, relaxedSettingOf, setRelaxed } from './engine/engine.ts'
export type { RelaxedSetting, TileEngine } from './engine/engine.ts'
export { requireMachineCode } from './engine/machineCode.ts'
export { getNumThreads, setNumThreads, withThreads } from './engine/threads.ts'
export { compileKernel, compileSource, kernelCacheStats, sourceOf } from './run/compile.ts'
export type { KernelSource } from './run/compile.ts'
export { emitKernel } from './emit/emit.ts'
export { ModuleBuilder } from './wasm/assembler.ts'
export { LANES } from './wasm/vectorCode.ts'
export { free, heapBytes, heapGuard, heapMemory, heapStats, heapView, setHeapGuard } from './memory/heap.ts'
export type { HeapGuard } from './memory/heap.ts'
export { beyondLimit, isBeyondLimit, memoryLimit, reclaimables, setMemoryLimit, setSoftLimit } from './memory/budget.ts'
export { checkedLimit, hostLimit } from './memory/hostMemory.ts'
export { OutOfMemoryError } from './memory/outOfMemory.ts'
export { allocating, recordLines, recordsLines } from './memory/owners.ts'
export type { MemoryOwner } from './memory/owners.ts'
export { CopiesOf, PackedCopies, PackedCopy } from './memory/packedCopies.ts'
export { SMALLEST_SCRATCH, ScratchMemory, allocate } from './memory/scratch.ts'
export * as memory from './memory/memory.ts'
export type { MemorySnapshot, MemoryStats } from './memory/memory.ts'
export { HeapCheck, checkHeap } from './memory/heapCheck.ts'
export { countAllocations, withFailingAllocation } from './memory/heapFaults.ts'
export type { InjectedFailure } from './memory/heapFaults.ts'
export {
  Block,
  blockBytes,
  collectBlocks,
  disposeBlock,
  ensureRoom,
  newBlock,
  readBlock,
  reviveBlock,
  setSynchronousCollection,
  spillOf,
  writeBlock,
} from './memory/storageBlock.ts'
export { BlockCopies, withPointers } from './memory/blockCopies.ts'
export { attend, beginPieces, endPieces } from './schedules/attention.ts'
export { overHeads } from './schedules/overHeads.ts'
export type { AttentionKeys } from './schedules/attention.ts'
export { attendBackward } from './schedules/attentionBackward.ts'
export { BLOCK as ATTENTION_BLOCK, PANEL as ATTENTION_PANEL, packKeys, packValues } from './schedules/attentionPanels.ts'
export type { AttentionMask } from './schedules/attentionPanels.ts'
export { pointwiseKernel } from './schedules/pointwise.ts'
export { compete } from './schedules/transpose.ts'
export { resample, resamplingsOf } from './schedules/resample.ts'
export type { Resampling } from './schedules/resample.ts'
export { rowsInBlocks, weightsInGroups } from './schedules/resampleGroups.ts'
export { loopTables, windowsOf } from './schedules/resampleWindows.ts'
export type { LineParts } from './schedules/resampleGroups.ts'
export { compileInTiles, compilePackedSource, compileScheduled, knownScratchBytes, spareOf } from './run/scheduled.ts'
export type { CompiledPacked, PackedKernel, PackedSource, ScheduledKernel, SpareKernel } from './run/scheduled.ts'
export { direct, takesDirect } from './schedules/direct.ts'
export type { DirectProblem } from './schedules/directParts.ts'
export { packedConvolution, packedConvolutionSource, winogradFor } from './run/convolutions.ts'
export { keptWeightBytes } from './schedules/winogradWeights.ts'
export { gathered, gatheredScratchBytes, gatheredSide } from './schedules/gathered.ts'
export type { GatheredProblem, GatheredSide, Windows } from './schedules/gathered.ts'
export { winograd } from './schedules/winograd.ts'
export { takesWinograd } from './schedules/winogradSpec.ts'
export type { WinogradSchedule } from './schedules/winogradSpec.ts'
export { takesWinogradWeight, winogradWeight } from './schedules/winogradWeight.ts'
export { directWeight, takesDirectWeight } from './schedules/directWeight.ts'
export { strictOrder } from './schedules/weightSums.ts'
export type { DirectWeightProblem, SumOrder } from './schedules/weightSums.ts'
export type { ConvolutionOperand, ConvolutionProblem, ConvolutionSizes, WeightGradientProblem } from './schedules/convolution.ts'
export { compilePacked, compileProduct, compileUnpacked, packedProduct, spareProduct } from './run/products.ts'
export { packedBytes, packedScratchBytes, paysPacked } from './schedules/gemm.ts'
export { FEW_LINES, FEW_ROWS } from './schedules/skinny.ts'
export type { PackedProduct, ProductKernel } from './run/products.ts'
export type { GemmSpec, MatrixOperand } from './schedules/gemmSpec.ts'
