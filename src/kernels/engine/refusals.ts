// Engines that cannot be had, or are given up: another one computes the same. Who wants to know why is told; nothing is printed here.

/** What computes faster where it can be had. */
export type RefusedEngine = 'threads' | 'machine code' | 'machine code on threads'

type Listener = (engine: RefusedEngine, why: string) => void

let listener: Listener | null = null
/** What was refused before anyone listened: threads are, with the first tensor. */
const early: (readonly [engine: RefusedEngine, why: string])[] = []

/** Tells `listen` of every engine that is refused, and of those that were. For the composition root. */
export function onRefusal(listen: Listener): void {
  listener = listen
  for (const refusal of early.splice(0)) listen(...refusal)
}

/** Says that an engine does not compute, and why. */
export function refused(engine: RefusedEngine, why: string): void {
  if (listener !== null) listener(engine, why)
  else if (early.length < 16) early.push([engine, why])
}
