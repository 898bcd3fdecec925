// makeFx: the operators that a function really runs, gradients inside included, as a GraphModule.
import { fakeLike, withMode } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { makeGraphModule, signatureOf } from '../fx/index.ts'
import type { GraphModule } from '../fx/index.ts'
import type { Argument } from '../fx/index.ts'
import { Module } from '../module/index.ts'
import { treeMap } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { ProxyTensorMode } from './proxyMode.ts'

/**
 * Runs a function or module on fake tensors shaped like the arguments and records every operator below autograd (and, with `decompose`,
 * decompositions). Numbers are specialised. In-place operators are recorded as functional ones; what they wrote to arguments, parameters and buffers
 * is copied there at the end of the graph. PyTorch's torch.fx.experimental.proxy_tensor.make_fx.
 *
 *     const gm = makeFx((x) => { const y = x.sin().sum(); return grad(y, x)[0] })(torch.ones([3], { requiresGrad: true }))
 */
export function makeFx(
  fn: Module | ((...args: never[]) => unknown),
  options: { readonly decompose?: boolean } = {},
): (...args: readonly unknown[]) => GraphModule {
  for (const key of Object.keys(options)) if (key !== 'decompose') throw new ArgumentError(`makeFx: unknown option '${key}'; known is decompose.`)
  const run = fn instanceof Module ? (fn.call as (...args: never[]) => unknown).bind(fn) : fn
  return (...args) => {
    const mode = new ProxyTensorMode(options)
    const names = argumentNames(fn, args.length)
    const fakes = args.map((arg, i) => {
      let leaves = 0
      return treeMap(arg, (leaf) => {
        if (!(leaf instanceof Tensor)) return leaf
        const fake = fakeLike(leaf)
        mode.placeholder(`${names[i] as string}_${++leaves}`, fake)
        return fake
      })
    }) as never[]
    const result = withMode(mode, () => run(...fakes))
    const nodes = treeMap(result, (leaf) => (leaf instanceof Tensor ? mode.nodeOf(leaf) : leaf)) as Argument
    mode.writeBack()
    mode.graph.output(nodes)
    const name = fn instanceof Module ? fn.getName() : fn.name
    return makeGraphModule(Object.fromEntries(mode.constants), mode.graph, name === '' ? 'GraphModule' : name)
  }
}

/** The names of a function's parameters; arg0, arg1, … where it has none, and for a module. */
function argumentNames(fn: Module | ((...args: never[]) => unknown), count: number): string[] {
  const parameters = fn instanceof Module ? [] : signatureOf(fn).parameters
  const named = parameters.length >= count && !parameters.some((p) => p.rest || p.properties !== null)
  return Array.from({ length: count }, (_, i) => (named ? (parameters[i]?.name as string) : `arg${i}`))
}
