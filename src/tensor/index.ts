// Tensors: a shape, a dtype, strides and a storage; what prints, copies and reads them.
export { adoptLayout, historyOfViews, Tensor } from './tensor.ts'
export type { GradFn, LayoutSpec, TensorSpec } from './tensor.ts'
export {
  asRule,
  awayFromCpu,
  becomeLaidAs,
  hasNumbers,
  layoutSeen,
  makeFake,
  NumbersNeeded,
  numbersOf,
  scalarOf,
  SymbolicTensor,
  twinOf,
} from './symbolicTensor.ts'
export {
  areNumbers,
  hasNoElements,
  isNoSize,
  sizeAdd,
  sizeAlwaysEq,
  sizeAtMost,
  sizeCeilDiv,
  sizeEq,
  sizeFloorDiv,
  sizeLess,
  sizeMax,
  sizeMin,
  sizeMod,
  sizeMul,
  sizeMustEq,
  sizeOfData,
  sizeNumber,
  sizeNumbers,
  sizeProduct,
  sizeSub,
  withDataSizes,
} from './size.ts'
export { Storage } from './storage.ts'
export type { Device, DeviceData, LateData, Writer } from './storage.ts'
export { complexUse, isComplexNumber, namesDType, noted, pairsOf } from './complexNumbers.ts'
export type { ComplexNumber } from './complexNumbers.ts'
export { dataMethods, valuesOfFakes } from './data.ts'
export type { NestedArray, TensorJson } from './data.ts'
export {
  tensorFromBytes,
  tensorFromComplex,
  tensorFromFunction,
  tensorFromValues,
  windowOf,
  exactElements,
  exactInteger,
  storedElements,
} from './elements.ts'
export type { TypedArray } from '../kernels/index.ts'
export { getDefaultDtype, setDefaultDtype, withDefaultDtype } from './defaultDType.ts'
export { dtypeAliases, dtypes, notADType } from './dtypeNames.ts'
export { finfo, iinfo } from './typeInfo.ts'
export type { FloatInfo, IntegerInfo } from './typeInfo.ts'
export { collapseDims } from './collapse.ts'
export type { Collapsed } from './collapse.ts'
export {
  broadcastShapes,
  contiguousStrides,
  formatShape,
  inverseOrder,
  isContiguous,
  memoryOrder,
  numelOf,
  reachOf,
  sameShape,
  wrapDim,
} from './shape.ts'
export { generatorOf, Generator, defaultGenerator, getRngState, manualSeed, philox, setRngState } from './generator.ts'
export type { GeneratorState, RandomDraw } from './generator.ts'
export { installMethods } from './methods.ts'
export { fromTransfer, transferMethods, windowBytes, windowNumel } from './transfer.ts'
export type { TensorTransfer } from './transfer.ts'
export { areTensors, asTensor, asTensors, checkTensor } from './asTensor.ts'
export type { Layout } from './sizes.ts'
