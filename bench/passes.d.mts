import type { GraphModule } from 'tensorfx/fx'

/** A pass: its name, what makes a graph of n calls for it, and the pass. */
export type Case = readonly [name: string, make: (n: number) => GraphModule, run: (gm: GraphModule) => unknown]

export const cases: readonly Case[]
export function model(n: number): GraphModule
