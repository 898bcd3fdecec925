// Walks as files: the page of a walk, and a file beside it with what it was made from, by which a check finds the cards whose functions have changed.
export { proseIn } from './savedWalk.ts'
export { acceptProse, checkFlows } from './staleCards.ts'
export type { StaleCard } from './staleCards.ts'
export { writeFlow } from './writeFlow.ts'
export type { FlowOptions } from './writeFlow.ts'
