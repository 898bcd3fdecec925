// Written by scripts/generatePasses.mjs; not committed.
export * from './cse.ts'
export * from './deadCode.ts'
export * from './legalize.ts'
export * from './mergeAttributeReads.ts'
export * from './propagateShapes.ts'
export * from './split.ts'
export * from './unusedSubmodules.ts'
