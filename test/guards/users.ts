// What answers calls from records: each makes of a function one that must do the same.
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction, checkGuards, makeFx } from 'tensorfx/aot'
import type { GraphModule } from 'tensorfx/fx'
import { treeLeaves, treeMap } from 'tensorfx/pytree'

export type Fn = (...args: never[]) => unknown
export type Use = <F extends Fn>(fn: F) => F

/** Graphs of makeFx, each used while its guards hold. */
function cachedGraphs(fn: Fn): (...args: readonly unknown[]) => unknown {
  const graphs: GraphModule[] = []
  return (...args) => {
    let gm = graphs.find((known) => checkGuards(known, args) === null)
    if (gm === undefined) {
      gm = makeFx(fn)(...args)
      graphs.push(gm)
    }
    // With plain arguments its placeholders are the tensors and numbers among them.
    const isNested = treeLeaves(args).length !== args.length || args.some((arg, i) => treeLeaves(arg)[0] !== args[i])
    return gm.forward(...(isNested ? args : args.filter((leaf) => leaf instanceof torch.Tensor || typeof leaf === 'number'))) as unknown
  }
}

const forwarding =
  (gm: GraphModule) =>
  (...inputs: readonly unknown[]) =>
    gm.forward(...inputs) as readonly unknown[]

const asIs = (use: (fn: Fn) => unknown): Use => use as Use

/** Graphs of makeFx have what is below autograd: their results are compared without their history. */
const detached = (use: (fn: Fn) => unknown): Use =>
  asIs((fn) => {
    const made = use(fn) as (...args: readonly unknown[]) => unknown
    return (...args: readonly unknown[]) => treeMap(made(...args), (leaf) => (leaf instanceof torch.Tensor ? leaf.detach() : leaf))
  })

interface User {
  readonly use: Use
  /** What it is compared with: the function itself. */
  readonly reference: Use
}

/** The cache that {@link checkGuards} makes possible. */
export const makeFxGraphs = "a cache of makeFx's graphs"

const reference: Use = (fn) => fn

export const users: Readonly<Record<string, User>> = {
  'compile with inductor': { use: asIs((fn) => compile(fn)), reference },
  'compile with eager': { use: asIs((fn) => compile(fn, { backend: 'eager' })), reference },
  skipReplay: { use: asIs((fn) => compile(fn, { skipReplay: true })), reference },
  aotFunction: { use: asIs((fn) => aotFunction(fn as unknown as (...args: readonly Tensor[]) => unknown, { fwCompiler: forwarding })), reference },
  [makeFxGraphs]: { use: detached(cachedGraphs), reference: detached((fn) => fn) },
}
