// Normal forms of graphs: arguments by name, operators as functions, and types for values. PyTorch's torch.fx.experimental.normalize and schema_type_annotation.
import { isTensorLike, targetInfo, isFunction, checkOptions } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { GraphModule } from '../run/graphModule.ts'
import type { Node, Target } from '../graph/node.ts'
import { operator } from '../graph/operator.ts'
import { normalizeFunction } from '../graph/operatorSchemas.ts'
import type { NormalizeOptions } from '../graph/operatorSchemas.ts'
import { isProxy, nodeOf } from '../values/proxy.ts'
import { Transformer } from '../trace/transformer.ts'

/**
 * Passes all arguments of functions that have a schema by name, including defaults: `new NormalizeArgs(gm).transform()`. With `onlyKwargs: false`, required arguments
 * stay positional. Types and meta are kept. PyTorch's NormalizeArgs.
 */
export class NormalizeArgs extends Transformer {
  readonly #options: NormalizeOptions

  constructor(gm: GraphModule, options: NormalizeOptions = {}) {
    super(gm)
    checkOptions('NormalizeArgs', options, { onlyKwargs: true })
    this.#options = { onlyKwargs: true, ...options }
  }

  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    // The value of the output is that of another node.
    if (isProxy(value) && node.op !== 'output') {
      const made = nodeOf(value)
      made.type = node.type
      made.meta = { ...node.meta }
    }
    return value
  }

  override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const call = normalizeFunction(target, args, kwargs, this.#options) ?? { args, kwargs }
    return super.callFunction(target, call.args, call.kwargs)
  }
}

const TENSOR_TYPE = 'torch.Tensor'

/** Sets the types of nodes that schemas and attributes determine. Nodes that have a type keep it. PyTorch's AnnotateTypesWithSchema. */
export class AnnotateTypesWithSchema extends Transformer {
  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    if (isProxy(value) && node.op !== 'placeholder' && node.op !== 'output') nodeOf(value).type ??= node.type ?? this.#typeOf(node)
    return value
  }

  #typeOf(node: Node): string | null {
    if (node.op === 'get_attr') return isTensorLike(this.fetchAttr(node.target)) ? TENSOR_TYPE : null
    const returns = node.op === 'call_function' ? (targetInfo(node.target)?.schema?.returns ?? []) : []
    return returns.length === 1 && returns[0]?.base === 'Tensor' && !returns[0].list ? TENSOR_TYPE : null
  }
}

type BinaryName = 'add' | 'sub' | 'mul' | 'truediv' | 'floordiv' | 'mod' | 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge'

/** Operators by the name of the equivalent function and method. */
const OPERATORS: ReadonlyMap<string, BinaryName> = new Map<string, BinaryName>([
  ['add', 'add'],
  ['sub', 'sub'],
  ['mul', 'mul'],
  ['div', 'truediv'],
  ['floorDivide', 'floordiv'],
  ['remainder', 'mod'],
  ['eq', 'eq'],
  ['ne', 'ne'],
  ['lt', 'lt'],
  ['le', 'le'],
  ['gt', 'gt'],
  ['ge', 'ge'],
])

/**
 * Turns `torch.add(x, y)` and `x.add(y)` into `operator.add(x, y)`, and likewise for the other binary operators. Sets types as {@link AnnotateTypesWithSchema} does.
 * PyTorch's NormalizeOperators.
 */
export class NormalizeOperators extends AnnotateTypesWithSchema {
  override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const name = isFunction(target) && targetInfo(target)?.name.startsWith('torch.') === true ? target.name : ''
    return super.callFunction(operatorFor(name, args, kwargs) ?? target, args, kwargs)
  }

  override callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const replacement = operatorFor(target, args, kwargs)
    return replacement === null ? super.callMethod(target, args, kwargs) : super.callFunction(replacement, args, kwargs)
  }
}

function operatorFor(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): TargetFunction | null {
  const found = OPERATORS.get(name)
  return found === undefined || args.length !== 2 || Object.keys(kwargs).length > 0 ? null : operator[found]
}
