// Numbers that go wrong: NaN and overflow, logs of values, drift between two runs, gradients.
export { findFirst } from './findFirst.ts'
export type { Found, FoundKind } from './findFirst.ts'
export { logNumerics, NumericsLog } from './logNumerics.ts'
export type { NumericsRow, Statistics } from './logNumerics.ts'
export { compareGradients, drift, Drift } from './drift.ts'
export type { DriftOptions, DriftRow, GraphRun } from './drift.ts'
export { detectAnomaly, setDetectAnomaly } from '../../autograd/index.ts'
