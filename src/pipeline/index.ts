// Passes and the function that runs them. Independent of graphs and kernels.
export { replaced } from './pass.ts'
export type { Pass, PassObserver, PassRun, Replaced } from './pass.ts'
export { defineRewrite } from './rewrite.ts'
export type { Rewrite, RewriteDefinition } from './rewrite.ts'
export { PassError, isVerifying, runPasses, setVerification } from './runPasses.ts'
export type { PassFacts, PassesResult, RunPassesOptions } from './runPasses.ts'
