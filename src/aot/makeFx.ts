// makeFx: the operators that a function runs, those of gradients inside it included, as a GraphModule.
import { fakeLike, withMode } from '../dispatch/index.ts'
import { makeGraphModule } from '../fx/index.ts'
import type { Argument, GraphModule } from '../fx/index.ts'
import { signatureOf } from '../fx/trace/parameters.ts'
import { Module } from '../module/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { treeMap } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { ProxyTensorMode } from './proxyMode.ts'

/**
 * Runs a function or module on fake tensors shaped like the arguments and records every operator below autograd (and, with `decompose`,
 * decompositions). Numbers become constants. In-place operators are recorded as functional ones; what they wrote to arguments, parameters and buffers
 * is copied back at the end of the graph. PyTorch's torch.fx.experimental.proxy_tensor.make_fx.
 *
 *     const gm = makeFx((x) => { const y = x.sin().sum(); return grad(y, x)[0] })(torch.ones([3], { requiresGrad: true }))
 */
export function makeFx(
  fn: Module | ((...args: never[]) => unknown),
  options: { readonly decompose?: boolean } = {},
): (...args: readonly unknown[]) => GraphModule {
  checkOptions('makeFx', options, { decompose: true })
  // Arguments have the types that `fn` takes, or its own checks fail.
  const run = (...args: readonly unknown[]): unknown => Reflect.apply(fn, undefined, args)
  return (...args) => {
    const mode = new ProxyTensorMode(options)
    const names = argumentNames(fn, args.length)
    const fakes = args.map((arg, i) => {
      let leaves = 0
      return treeMap(arg, (leaf) => {
        if (!(leaf instanceof Tensor)) return leaf
        const fake = fakeLike(leaf)
        mode.placeholder(`${names[i] ?? `arg${i}`}_${++leaves}`, fake)
        return fake
      })
    })
    const result = withMode(mode, () => run(...fakes))
    // What the function returns of its arguments are the arguments, so they get their values first.
    mode.writeBack()
    const nodes = treeMap(result, (leaf) => (leaf instanceof Tensor ? mode.nodeOf(leaf) : leaf)) as Argument
    mode.graph.output(nodes)
    const name = fn instanceof Module ? fn.getName() : fn.name
    return makeGraphModule(Object.fromEntries(mode.constants), mode.graph, name === '' ? 'GraphModule' : name)
  }
}

/** The names of a function's parameters; arg0, arg1, … for a module, and if they have no names. */
function argumentNames(fn: Module | ((...args: never[]) => unknown), count: number): string[] {
  const parameters = fn instanceof Module ? [] : signatureOf(fn).parameters
  const named = parameters.length >= count && !parameters.some((p) => p.rest || p.properties !== null)
  return Array.from({ length: count }, (_, i) => (named ? parameters[i]?.name : undefined) ?? `arg${i}`)
}
