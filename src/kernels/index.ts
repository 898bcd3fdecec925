// kernels/: dtypes, the loop IR, its compiler, the heap, and the schedules.
export { DTYPES, accumulationType, complexDType, dtypeInfo, isComplexDType, isDType, isNarrow, kindRank, promoteTypes, realDType } from './dtype.ts'
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
} from './dtype.ts'
export { readElement, readNumber, writeElement } from './elements.ts'
export { KernelError } from './errors.ts'
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
} from './loopIr.ts'
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
} from './loopIr.ts'
export { roundedDown, roundedUp, sizeDifference, sizeProduct, sizeSum } from './sizes.ts'
export { scratchBytes } from './scratchLayout.ts'
export { SPAN_ALIGN, placeSpans } from './spans.ts'
export { scalarOperation } from './scalarOps.ts'
export { scalarOps } from './rareOps.ts'
export type { ScalarOp } from './scalarOps.ts'
export type { ScalarOpRecord } from './scalarOpRecord.ts'
export { isCostly } from './analysis.ts'
export { rounded } from './numbers.ts'
export { printKernel } from './print.ts'
export { verifyKernel } from './verify.ts'
export { runReference } from './reference.ts'
export type { ReferenceArgs } from './reference.ts'
export { BoundedCache, cacheSizes, kernelBytes, kernelsByCall, kernelsByLiterals } from './boundedCache.ts'
export type { CacheSize, CompiledKernel } from './boundedCache.ts'
export { areDeterministicAlgorithmsEnabled, backends, useDeterministicAlgorithms } from './backends.ts'
export {
  PerEngine,
  currentAccuracy,
  currentEngine,
  engineFor,
  hasRelaxedSimd,
  isStrict,
  processEngine,
  relaxedSetting,
  relaxedSettingOf,
  setRelaxed,
  setStrict,
  withAccuracy,
  withStrict,
} from './engine.ts'
export type { Accuracy, EngineName, RelaxedSetting } from './engine.ts'
export { compileKernel, kernelCacheStats } from './compile.ts'
export { emitKernel } from './wasm/emit.ts'
export { ModuleBuilder } from './wasm/assembler.ts'
export { LANES } from './wasm/vectorCode.ts'
export { free, heapBytes, heapGuard, heapMemory, heapStats, heapView, setHeapGuard } from './heap.ts'
export type { HeapGuard } from './heap.ts'
export { beyondLimit, isBeyondLimit, memoryLimit, reclaimables, setMemoryLimit, setSoftLimit } from './budget.ts'
export { checkedLimit, hostLimit } from './hostMemory.ts'
export { OutOfMemoryError } from './outOfMemory.ts'
export { allocating, recordLines, recordsLines } from './owners.ts'
export type { MemoryOwner } from './owners.ts'
export { CopiesOf, PackedCopies, PackedCopy } from './packedCopies.ts'
export { SMALLEST_SCRATCH, ScratchMemory, allocate } from './scratch.ts'
export * as memory from './memory.ts'
export type { MemorySnapshot, MemoryStats } from './memory.ts'
export { HeapCheck, checkHeap } from './heapCheck.ts'
export { countAllocations, withFailingAllocation } from './heapFaults.ts'
export type { InjectedFailure } from './heapFaults.ts'
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
} from './storageBlock.ts'
export { BlockCopies, withPointers } from './blockCopies.ts'
export { attend, beginPieces, endPieces } from './schedules/attention.ts'
export type { AttentionKeys } from './schedules/attention.ts'
export { attendBackward } from './schedules/attentionBackward.ts'
export { BLOCK as ATTENTION_BLOCK, PANEL as ATTENTION_PANEL, packKeys, packValues } from './schedules/attentionPanels.ts'
export type { AttentionMask } from './schedules/attentionPanels.ts'
export { pointwiseKernel } from './schedules/pointwise.ts'
export { resample, resamplingsOf } from './schedules/resample.ts'
export type { Resampling } from './schedules/resample.ts'
export { rowsInBlocks, weightsInGroups } from './schedules/resampleGroups.ts'
export { loopTables, windowsOf } from './schedules/resampleWindows.ts'
export type { LineParts } from './schedules/resampleGroups.ts'
export { compileScheduled, knownScratchBytes, spareOf } from './scheduled.ts'
export type { PackedKernel, ScheduledKernel, SpareKernel } from './scheduled.ts'
export { direct, takesDirect } from './schedules/direct.ts'
export type { DirectProblem } from './schedules/direct.ts'
export { compilePackedConvolution, packedConvolution, winogradFor } from './convolutions.ts'
export type { PackedConvolution } from './convolutions.ts'
export { keptWeightBytes } from './schedules/winograd.ts'
export { gathered, gatheredScratchBytes, gatheredSide } from './schedules/gathered.ts'
export type { GatheredProblem, GatheredSide, Windows } from './schedules/gathered.ts'
export { takesWinograd, winograd } from './schedules/winograd.ts'
export type { WinogradSchedule } from './schedules/winograd.ts'
export { takesWinogradWeight, winogradWeight } from './schedules/winogradWeight.ts'
export { directWeight, strictOrder, takesDirectWeight } from './schedules/directWeight.ts'
export type { DirectWeightProblem, SumOrder } from './schedules/directWeight.ts'
export type { ConvolutionOperand, ConvolutionProblem, ConvolutionSizes, WeightGradientProblem } from './schedules/convolution.ts'
export { compilePacked, compileProduct, compileUnpacked, packedProduct } from './products.ts'
export { packedBytes, packedScratchBytes, paysPacked } from './schedules/gemm.ts'
export { FEW_LINES, FEW_ROWS } from './schedules/skinny.ts'
export type { PackedProduct, ProductKernel } from './products.ts'
export type { GemmSpec, MatrixOperand } from './gemmSpec.ts'
