// Checks the shapes of a graph without running it, as far as they are known. PyTorch's torch.fx.experimental.graph_gradual_typechecker.
import { ShapeError, UnsupportedError } from '../../../errors/index.ts'
import type { Module } from '../../../module/index.ts'
import { checkCount, isTensorLike } from '../../../protocol/index.ts'
import { Node } from '../../graph/node.ts'
import type { NodeType } from '../../../protocol/index.ts'
import { normalizeFunction } from '../../graph/operatorSchemas.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { RuleTable, moduleOf, placeOf } from './layerRules.ts'
import type { RuleTarget } from './layerRules.ts'
import {
  adaptiveavgpool2dCheck,
  broadcastTypes,
  calculateOutDimension,
  canReshape,
  expandToTensorDim,
  flattenCheck,
  getGreatestUpperBound,
  linearCheck,
  maxpool2dCheck,
  numberOf,
} from './shapeRules.ts'
import { Dyn, TensorType, TypeList, gradualType, isConsistent, isMorePrecise, isTensorType, tensorTypeOf, typesEqual } from './tensorType.ts'
import type { Dimension } from './tensorType.ts'

/**
 * Gives a node its type, from the types of its inputs, and returns it. It may make the types of the inputs more precise. It throws a ShapeError for types that the node
 * cannot take.
 */
export type InferenceRule = (node: Node, gm: GraphModule) => NodeType

/** The node at an argument. */
export function inputOf(node: Node, index = 0): Node {
  const arg = node.args[index]
  if (arg instanceof Node) return arg
  throw new ShapeError(`argument ${index} of node ${node.name} must be the value of a node${placeOf(node)}`)
}

const typeOf = (node: Node): NodeType => gradualType(node.type)

/** The arguments of a call by their names in the operator's schema; methods and calls that fit no schema by position. */
function argumentsOf(node: Node, names: readonly string[]): Readonly<Record<string, unknown>> {
  const call = node.op === 'call_function' ? normalizeFunction(node.target, node.args, node.kwargs, { onlyKwargs: true }) : null
  return call?.kwargs ?? { ...Object.fromEntries(names.map((name, i) => [name, node.args[i]])), ...node.kwargs }
}

/** The first and last dimension that a call of flatten joins. */
export function flattenedDims(node: Node): readonly [start: number, end: number] {
  const given = argumentsOf(node, ['input', 'start_dim', 'end_dim'])
  const at = (names: readonly string[], fallback: number): number => {
    const value = names.map((name) => given[name]).find((v) => typeof v === 'number')
    return typeof value === 'number' ? value : fallback
  }
  return [at(['start_dim', 'startDim'], 0), at(['end_dim', 'endDim'], -1)]
}

/** Sets the type of a node, unless it has a more precise one. */
function setType(node: Node, type: NodeType): NodeType {
  return (node.type = getGreatestUpperBound(type, typeOf(node)))
}

/** The type of the input, which becomes as long as a type that the node has already. */
function inputType(node: Node): NodeType {
  const input = inputOf(node)
  const own = typeOf(node)
  if (typeOf(input) === Dyn && isTensorType(own)) input.type = expandToTensorDim(Dyn, own.dims.length)
  return typeOf(input)
}

/** A rule for layers that compute a tensor type from one. */
const layer =
  (compute: (type: TensorType, module: Module) => TensorType): InferenceRule =>
  (node, gm) => {
    const type = inputType(node)
    return isTensorType(type) ? setType(node, compute(type, moduleOf(gm, node))) : typeOf(node)
  }

function cannotApply(node: Node, module: Module, input: NodeType): ShapeError {
  return new ShapeError(
    `Cannot apply ${String(module)} with input type ${String(input)} and existing type ${String(node.type)} on ${node.name}${placeOf(node)}`,
  )
}

const addRule: InferenceRule = (node) => {
  const [left, right] = node.args
  if (!(left instanceof Node) || !(right instanceof Node)) return (node.type = typeOf(left instanceof Node ? left : inputOf(node, 1)))
  const [one, other] = [typeOf(left), typeOf(right)]
  // A number added to a tensor.
  if (isNumberType(one) && isTensorType(other)) return (node.type = other)
  if (isNumberType(other) && isTensorType(one)) return (node.type = one)
  const [a, b] = broadcastTypes(one, other)
  node.meta['broadcast'] = !typesEqual(a, one) || !typesEqual(b, other)
  if (node.meta['broadcast'] === true) Object.assign(node.meta, { [left.name]: a, [right.name]: b })
  // Sizes of the less precise type may come from broadcasting: [1, 2, Dyn] + [1, 2, 1].
  if (isConsistent(a, b)) return (node.type = isMorePrecise(a, b) ? b : a)
  throw new ShapeError(
    `Cannot add arguments ${left.name} (${String(one)}) and ${right.name} (${String(other)}) in node ${node.name}. Types should match ${placeOf(node)}`,
  )
}

const isNumberType = (type: NodeType): boolean => type === 'int' || type === 'float' || type === 'number'

const transposeRule: InferenceRule = (node) => {
  const type = typeOf(inputOf(node))
  const [, first, second] = Object.values(argumentsOf(node, ['input', 'dim0', 'dim1']))
  if (type === Dyn) return (node.type = Dyn)
  const rank = isTensorType(type) ? type.dims.length : 0
  const [a, b] = [first, second].map((dim) => (typeof dim === 'number' ? (dim < 0 ? rank + dim : dim) : -1))
  const [from, to] = isTensorType(type) ? [type.dims[a ?? -1], type.dims[b ?? -1]] : []
  if (!isTensorType(type) || from === undefined || to === undefined)
    throw new ShapeError(`Cannot transpose ${String(first)} and ${String(second)} in type ${String(type)} for node ${node.name}${placeOf(node)}`)
  return setType(node, TensorType(type.dims.map((dim, i) => (i === a ? to : i === b ? from : dim))))
}

const reshapeRule: InferenceRule = (node) => {
  const type = typeOf(inputOf(node))
  const given = node.args.length === 2 && Array.isArray(node.args[1]) ? node.args[1] : (node.kwargs['shape'] ?? node.args.slice(1))
  const shape = (Array.isArray(given) ? given : []).map((size: unknown): Dimension => (typeof size === 'number' ? size : Dyn))
  const wanted = TensorType(shape.map((size) => (size === -1 ? Dyn : size)))
  if (type === Dyn || (isTensorType(type) && canReshape(type, shape))) return (node.type = wanted)
  throw new ShapeError(`Cannot reshape in node ${node.name} from ${String(type)} to ${String(wanted)}${placeOf(node)}`)
}

/** The layer of a node, and the types of its input and of its result as images. The input gets its own. */
function imageLayer(node: Node, gm: GraphModule) {
  const input = inputOf(node)
  const module = moduleOf(gm, node)
  const type = expandToTensorDim(typeOf(input), 4)
  input.type = type
  return { module, type, own: expandToTensorDim(typeOf(node), 4) }
}

const batchNormRule: InferenceRule = (node, gm) => {
  const { module, type, own } = imageLayer(node, gm)
  node.type = own
  const channels = numberOf(module, 'numFeatures')
  if (![type.dims[1], own.dims[1]].every((dim) => isConsistent(dim ?? Dyn, channels)) || !isConsistent(type, own))
    throw cannotApply(node, module, type)
  return setType(node, type)
}

const convRule: InferenceRule = (node, gm) => {
  const { module, type, own } = imageLayer(node, gm)
  const [batch = Dyn, channels = Dyn, height = Dyn, width = Dyn] = type.dims
  if (!isConsistent(channels, numberOf(module, 'inChannels'))) throw cannotApply(node, module, type)
  const sizes = [calculateOutDimension(height, module, 0), calculateOutDimension(width, module, 1)]
  return (node.type = getGreatestUpperBound(tensorTypeOf([batch, numberOf(module, 'outChannels'), ...sizes]), own))
}

const reluRule: InferenceRule = (node) => {
  const type = inputType(node)
  return isTensorType(type) ? setType(node, type) : typeOf(node)
}

const getattrRule: InferenceRule = (node) => {
  if (node.args[1] === 'shape') return (node.type = Dyn)
  throw new UnsupportedError(`Not yet implemented: reading attribute '${String(node.args[1])}' of a value, in node ${node.name}${placeOf(node)}`)
}

const flattenRule: InferenceRule = (node) => {
  const type = inputType(node)
  return isTensorType(type) ? setType(node, flattenCheck(type, ...flattenedDims(node))) : typeOf(node)
}

const rules = new RuleTable<InferenceRule>('Inference rule', {
  'torch.add': addRule,
  'operator.add': addRule,
  'operator.iadd': addRule,
  'builtins.getattr': getattrRule,
  'torch.transpose': transposeRule,
  'torch.reshape': reshapeRule,
  'torch.flatten': flattenRule,
  'torch.nn.BatchNorm2d': batchNormRule,
  'torch.nn.Conv2d': convRule,
  'torch.nn.ReLU': reluRule,
  'torch.nn.MaxPool2d': layer(maxpool2dCheck),
  'torch.nn.Linear': layer(linearCheck),
  'torch.nn.AdaptiveAvgPool2d': layer(adaptiveavgpool2dCheck),
})

/**
 * Tells {@link GraphTypeChecker} how a function, or a class of modules, changes types. A subclass of a layer needs a rule of its own. PyTorch's register_inference_rule.
 *
 *     registerInferenceRule(torch.relu, (node) => (node.type = node.args[0].type))
 *
 * @throws ArgumentError if there is a rule already.
 */
export const registerInferenceRule = (target: RuleTarget, rule: InferenceRule): void => rules.add(target, rule)

/** The type of what a node's argument holds: that of the node, or a list of types. */
function typeOfArgument(value: unknown): NodeType {
  if (value instanceof Node) return value.type ?? Dyn
  return Array.isArray(value) ? new TypeList(value.map(typeOfArgument)) : Dyn
}

/**
 * Checks a graph: gives every node the type of its value, and throws at the first node whose inputs do not fit. Nodes may have types, on placeholders as well as in the
 * middle; what is not known is {@link Dyn}. The types of inputs become more precise where a layer tells their rank. PyTorch's GraphTypeChecker.
 *
 *     const gm = fx.symbolicTrace(model)
 *     gm.graph.findNodes({ op: 'placeholder' })[0].type = TensorType([Dyn, 3, 32, 32])
 *     new GraphTypeChecker({}, gm).typeCheck()
 */
export class GraphTypeChecker {
  readonly env: object
  readonly traced: GraphModule

  constructor(env: object, traced: GraphModule) {
    checkCount('GraphTypeChecker', arguments, 2)
    this.env = env
    this.traced = traced
  }

  /**
   * Checks all nodes, in order.
   * @returns true.
   * @throws ShapeError for shapes that do not fit, UnsupportedError for an operation without a rule ({@link registerInferenceRule}).
   */
  typeCheck(): boolean {
    for (const node of this.traced.graph.nodes) this.typeCheckNode(node)
    return true
  }

  /** Checks one node, whose inputs have been checked, and returns its type. */
  typeCheckNode(node: Node): NodeType {
    const type = (node.type = gradualType(node.type))
    switch (node.op) {
      case 'placeholder':
        return type
      case 'get_attr': {
        const value = this.traced.attribute(node.target)
        return isTensorLike(value) ? (node.type = TensorType(value.shape)) : type
      }
      case 'output':
        return (node.type = typeOfArgument(node.args[0]))
      default:
        return rules.get(this.traced, node)(node, this.traced)
    }
  }
}
