// Graphs with one spelling for each thing: arguments by name, operators as functions, values with types. PyTorch's torch.fx.experimental.normalize and
// schema_type_annotation.
import { isTensorLike, targetInfo } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { GraphModule } from '../graphModule.ts'
import type { Node, Target } from '../node.ts'
import { operator } from '../operator.ts'
import { normalizeFunction } from '../operatorSchemas.ts'
import type { NormalizeOptions } from '../operatorSchemas.ts'
import { isProxy, nodeOf } from '../proxy.ts'
import { Transformer } from '../transformer.ts'

/**
 * Writes the arguments of functions that have a schema by name, defaults included: `new NormalizeArgs(gm).transform()`. With `onlyKwargs: false`
 * required arguments stay positional. Types and meta are kept. PyTorch's NormalizeArgs.
 */
export class NormalizeArgs extends Transformer {
  readonly #options: NormalizeOptions

  constructor(gm: GraphModule, options: NormalizeOptions = {}) {
    super(gm)
    this.#options = { onlyKwargs: true, ...options }
  }

  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    if (isProxy(value)) {
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

/** Notes the type of values as far as schemas and attributes tell it; types that are known stay. PyTorch's AnnotateTypesWithSchema. */
export class AnnotateTypesWithSchema extends Transformer {
  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    if (isProxy(value) && node.op !== 'placeholder') nodeOf(value).type ??= node.type ?? this.#typeOf(node)
    return value
  }

  #typeOf(node: Node): string | null {
    if (node.op === 'get_attr') return isTensorLike(this.fetchAttr(node.target as string)) ? TENSOR_TYPE : null
    const returns = node.op === 'call_function' ? (targetInfo(node.target)?.schema?.returns ?? []) : []
    return returns.length === 1 && returns[0]?.base === 'Tensor' && !returns[0].list ? TENSOR_TYPE : null
  }
}

type BinaryName = 'add' | 'sub' | 'mul' | 'truediv' | 'floordiv' | 'mod' | 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge'

/** Operators by the name of the function and the method that compute the same. */
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
 * `torch.add(x, y)` and `x.add(y)` become `operator.add(x, y)`, and so do the other operators of two values; types are noted as
 * {@link AnnotateTypesWithSchema} does. PyTorch's NormalizeOperators.
 */
export class NormalizeOperators extends AnnotateTypesWithSchema {
  override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const name = typeof target === 'function' && targetInfo(target)?.name.startsWith('torch.') === true ? target.name : ''
    return super.callFunction(operatorFor(name, args, kwargs) ?? target, args, kwargs)
  }

  override callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const replacement = operatorFor(target, args, kwargs)
    return replacement === null ? super.callMethod(target, args, kwargs) : super.callFunction(replacement, args, kwargs)
  }
}

function operatorFor(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): TargetFunction | null {
  const found = OPERATORS.get(name)
  return found === undefined || args.length !== 2 || Object.keys(kwargs).length > 0 ? null : (operator[found] as TargetFunction)
}
