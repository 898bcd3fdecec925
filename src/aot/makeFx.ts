// makeFx: the operators that a function really runs, gradients inside included, as a GraphModule.
import { fakeLike, withMode } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { GraphModule } from '../fx/index.ts'
import type { Argument } from '../fx/index.ts'
import { treeMap } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { ProxyTensorMode } from './proxyMode.ts'

/**
 * Runs `fn` on fake tensors shaped like the arguments and records every operator below autograd (and, with `decompose`, decompositions).
 * Numbers are specialised. PyTorch's torch.fx.experimental.proxy_tensor.make_fx.
 *
 *     const gm = makeFx((x) => { const y = x.sin().sum(); return grad(y, x)[0] })(torch.ones([3], { requiresGrad: true }))
 */
export function makeFx(
  fn: (...args: never[]) => unknown,
  options: { readonly decompose?: boolean } = {},
): (...args: readonly unknown[]) => GraphModule {
  for (const key of Object.keys(options)) if (key !== 'decompose') throw new ArgumentError(`makeFx: unknown option '${key}'; known is decompose.`)
  return (...args) => {
    const mode = new ProxyTensorMode(options)
    let count = 0
    const fakes = treeMap(args, (leaf) => {
      if (!(leaf instanceof Tensor)) return leaf
      const fake = fakeLike(leaf)
      mode.placeholder(`arg${count++}_1`, fake)
      return fake
    }) as never[]
    const result = withMode(mode, () => fn(...fakes))
    mode.graph.output(treeMap(result, (leaf) => (leaf instanceof Tensor ? mode.nodeOf(leaf) : leaf)) as Argument)
    return new GraphModule(Object.fromEntries(mode.constants), mode.graph, fn.name === '' ? 'GraphModule' : fn.name)
  }
}
