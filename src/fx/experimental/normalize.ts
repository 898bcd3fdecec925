// Normal forms of graphs: arguments by name, operators as functions, and types for values. PyTorch's torch.fx.experimental.normalize and schema_type_annotation.
import { Module, isLibraryLayer } from '../../module/index.ts'
import { checkCount, isTensorLike, targetInfo, isFunction, isPlainObject, checkOptions } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { GraphModule } from '../run/graphModule.ts'
import type { Node, Target } from '../graph/node.ts'
import { operator } from '../graph/operator.ts'
import { normalizeFunction } from '../graph/operatorSchemas.ts'
import type { NormalizeOptions, NormalizedCall } from '../graph/operatorSchemas.ts'
import { isProxy, nodeOf } from '../values/proxy.ts'
import { Transformer } from '../trace/transformer.ts'
import { normalizeBySource } from './normalizeModule.ts'

/**
 * Passes all arguments of functions that have a schema by name, including defaults: `new NormalizeArgs(gm).transform()`. With `onlyKwargs: false`, required arguments
 * stay positional. Other functions and modules get the defaults of their parameters and options, as far as their source tells. Types and meta are kept. PyTorch's
 * NormalizeArgs.
 */
export class NormalizeArgs extends Transformer {
  readonly #options: NormalizeOptions

  constructor(gm: GraphModule, options: NormalizeOptions = {}) {
    checkCount('NormalizeArgs', arguments, 2)
    super(gm)
    checkOptions('NormalizeArgs', options, { onlyKwargs: 'boolean' })
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
    const call = normalizeFunction(target, args, kwargs, this.#options) ?? bySource(target, args, kwargs)
    return super.callFunction(target, call.args, call.kwargs)
  }

  override callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const module = this.fetchAttr(target)
    // eslint-disable-next-line typescript/unbound-method -- only its source is read
    const call = module instanceof Module ? bySource(module.forward, args, kwargs) : { args, kwargs }
    return super.callModule(target, call.args, call.kwargs)
  }
}

const bySource = (target: unknown, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): NormalizedCall =>
  (isFunction(target) ? normalizeBySource(target, args, kwargs) : null) ?? { args, kwargs }

const TENSOR_TYPE = 'torch.Tensor'

/** Options of {@link AnnotateTypesWithSchema}. */
export interface AnnotateOptions {
  /** Give calls of functions the type of their schema. Default true. */
  readonly annotateFunctionals?: boolean
  /** Give calls of layers that return a tensor its type. Default true. */
  readonly annotateModules?: boolean
  /** Give attributes the types of their values. Default true. */
  readonly annotateGetAttrs?: boolean
}

/**
 * Sets the types of nodes that schemas, layers and attributes determine. Nodes that have a type keep it. PyTorch's AnnotateTypesWithSchema.
 */
export class AnnotateTypesWithSchema extends Transformer {
  readonly #owner: GraphModule
  readonly #options: AnnotateOptions

  constructor(gm: GraphModule, options: AnnotateOptions = {}) {
    checkCount('AnnotateTypesWithSchema', arguments, 2)
    super(gm)
    checkOptions(new.target.name, options, { annotateFunctionals: 'boolean', annotateModules: 'boolean', annotateGetAttrs: 'boolean' })
    this.#owner = gm
    this.#options = options
  }

  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    if (isProxy(value) && node.op !== 'output') nodeOf(value).type ??= node.type ?? this.#typeOf(node)
    return value
  }

  #typeOf(node: Node): string | null {
    const { annotateFunctionals = true, annotateModules = true, annotateGetAttrs = true } = this.#options
    switch (node.op) {
      case 'get_attr':
        return annotateGetAttrs ? typeOfValue(this.fetchAttr(node.target)) : null
      case 'call_module':
        return annotateModules && returnsTensor(this.#owner.attribute(node.target)) ? TENSOR_TYPE : null
      case 'call_function': {
        const returns = annotateFunctionals ? (targetInfo(node.target)?.schema?.returns ?? []) : []
        return returns.length === 1 && returns[0]?.base === 'Tensor' && !returns[0].list ? TENSOR_TYPE : null
      }
      default:
        return null
    }
  }
}

/** Layers are recognised by their attributes, because minifiers change class names: attention and recurrent layers return several values. */
const returnsTensor = (module: unknown): boolean =>
  module instanceof Module && isLibraryLayer(module) && !('numHeads' in module) && !('hiddenSize' in module)

/** The type of an attribute's value, as text; null if PyTorch has none for it. */
function typeOfValue(value: unknown): string | null {
  if (isTensorLike(value)) return TENSOR_TYPE
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'str'
  if (Array.isArray(value)) return containerOf('List', value.map(typeOfValue))
  return isPlainObject(value) ? containerOf('Dict', Object.values(value).map(typeOfValue)) : null
}

/** A list, or an object with strings as keys, whose elements have one type. */
function containerOf(name: 'List' | 'Dict', types: readonly (string | null)[]): string | null {
  const [first = null] = types
  if (first === null || types.some((type) => type !== first)) return null
  return name === 'List' ? `List[${first}]` : `Dict[str, ${first}]`
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
