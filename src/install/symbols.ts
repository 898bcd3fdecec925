// The composition root of symbolic traces: expressions of sizes, which eager programs and compile do without.
import { installSymbols } from '../aot/makeFx/symbolicGraphs.ts'
import { ShapeEnv } from '../symbols/index.ts'

/** Lets makeFx trace with symbolic sizes. */
export const installSymbolicTraces = (): void => installSymbols(() => new ShapeEnv())
