// Types for the inputs of a function: next to its parameters, as a decorator or around it, or by name on a graph. What Python's annotations are for PyTorch.
import { ArgumentError } from '../../../errors/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkCount, isFunction, isPlainObject, nearest, valueText } from '../../../protocol/index.ts'
import type { TargetFunction } from '../../../protocol/index.ts'
import type { NodeType } from '../../../protocol/index.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { signatureOf, standsFor } from '../../trace/parameters.ts'
import { isProxy, nodeOf } from '../../values/proxy.ts'

/** The type of a parameter; null for none. */
export type GivenType = NodeType | null

/**
 * Gives the parameters of a function or method types, in order, which its placeholders have when it is traced; calls with tensors do not change. A decorator for methods, and a function of functions.
 *
 *     class Net extends Module {
 *       \@tensorTypes(TensorType([Dyn, 3, 32, 32]), Dyn)
 *       forward(x: Tensor, y: Tensor) { … }
 *     }
 *     const typed = tensorTypes(TensorType([Dyn, 4]))((x) => torch.relu(x))
 *
 * @throws ArgumentError for more types than there are parameters.
 */
export function tensorTypes(...types: readonly GivenType[]): <F extends TargetFunction>(fn: F, context?: unknown) => F {
  return (fn) => {
    if (!isFunction(fn)) throw new ArgumentError(`tensorTypes: expected a function or a method, got ${valueText(fn)}.`)
    const { parameters } = signatureOf(fn)
    if (types.length > parameters.length && !parameters.some((parameter) => parameter.rest))
      throw new ArgumentError(`tensorTypes: there are ${types.length} types, but ${fn.name || 'the function'} has ${parameters.length} parameters.`)
    return typedFunction(fn, types)
  }
}

function typedFunction<F extends TargetFunction>(fn: F, types: readonly GivenType[]): F {
  const typed = new Proxy(fn, {
    apply(target, receiver, args: readonly unknown[]) {
      for (const [i, arg] of args.entries()) {
        const node = isProxy(arg) ? nodeOf(arg) : null
        const type = types[i] ?? null
        if (node !== null && node.op === 'placeholder' && type !== null) node.type ??= type
      }
      return Reflect.apply(target, receiver, args)
    },
  })
  return standsFor(typed, Function.prototype.toString.call(fn))
}

/**
 * Sets the types of a graph's placeholders, by name. Those that are not named keep theirs.
 *
 *     setInputTypes(gm, { x: TensorType([Dyn, 3, 32, 32]) })
 *
 * @throws ArgumentError for a name that no placeholder has.
 */
export function setInputTypes(gm: GraphModule, types: Readonly<Record<string, GivenType>>): void {
  checkCount('setInputTypes', arguments, 2)
  checkGraphModule('setInputTypes', gm)
  checkArgument(isPlainObject(types), 'setInputTypes', 'types', 'an object of types by the names of inputs', types)
  const placeholders = new Map(gm.graph.findNodes({ op: 'placeholder' }).map((node) => [node.target, node]))
  for (const [name, type] of Object.entries(types)) {
    const node = placeholders.get(name)
    if (node === undefined) {
      const hint = nearest(name, [...placeholders.keys()])
      throw new ArgumentError(
        `setInputTypes: the graph has no input '${name}'${hint === null ? '.' : `; did you mean '${hint}'?`} Its inputs are ${[...placeholders.keys()].join(', ') || 'none'}.`,
      )
    }
    node.type = type
  }
}
