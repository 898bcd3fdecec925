// The composition root of symbolic traces: expressions of sizes, which eager programs do without.
import { installSymbols } from '../aot/makeFx/symbolicGraphs.ts'
// Not symbols/index.ts: recordings, printing in Python's syntax and the like would be loaded by every program.
import { ShapeEnv } from '../symbols/shapeEnv.ts'

/** Lets makeFx trace with symbolic sizes, and compile print those of its graphs. */
export const installSymbolicTraces = (): void => installSymbols(() => new ShapeEnv())
