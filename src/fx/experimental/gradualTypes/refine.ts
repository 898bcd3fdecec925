// Variables in the place of unknown sizes, and equations between them. PyTorch's Refine, of torch.fx.experimental.graph_gradual_typechecker.
import { checkCount } from '../../../protocol/index.ts'
import { Node } from '../../graph/node.ts'
import type { NodeType } from '../../../protocol/index.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { flattenedDims, inputOf } from './graphGradualTypechecker.ts'
import { RuleTable, moduleOf } from './layerRules.ts'
import type { RuleTarget } from './layerRules.ts'
import { Equality } from './refinementTypes.ts'
import { broadcastTypes, calculateOutDimension } from './shapeRules.ts'
import { Dyn, TypeList, gradualType, isTensorType, tensorTypeOf, typesEqual } from './tensorType.ts'
import type { Dimension, TensorType } from './tensorType.ts'
import { Var } from '../unification/variable.ts'

/** The equations between the sizes of a node's inputs and those of its value. */
export type RefinementRule = (node: Node) => readonly Equality[]

/** Sets the type of a node to one whose sizes are expressions of the input's. */
export type AlgebraicRule = (node: Node, gm: GraphModule) => void

type Dims = readonly Dimension[]

const dimsOf = (node: Node): Dims | null => {
  const type = gradualType(node.type)
  return isTensorType(type) ? type.dims : null
}

const equations = (a: Dims, b: Dims): Equality[] => a.slice(0, b.length).map((dim, i) => new Equality(dim, b[i] ?? Dyn))

/** A rule for the sizes of the first input and of the result. */
const between =
  (compare: (input: Dims, result: Dims, node: Node) => readonly Equality[]): RefinementRule =>
  (node) => {
    const [input, result] = [dimsOf(inputOf(node)), dimsOf(node)]
    return input === null || result === null ? [] : compare(input, result, node)
  }

const batch = between((input, result) => equations(input.slice(0, 1), result))
const firstTwo = between((input, result) => equations(input.slice(0, 2), result))
const all = between((input, result) => equations(input, result))

/** Where sizes of the operands are equal after broadcasting, the result has that size. */
const elementWise: RefinementRule = (node) => {
  const [left, right] = node.args
  const result = dimsOf(node)
  if (!(left instanceof Node) || !(right instanceof Node) || result === null || dimsOf(left) === null || dimsOf(right) === null) return []
  const [a, b] = broadcastTypes(gradualType(left.type), gradualType(right.type))
  if (!isTensorType(a) || !isTensorType(b)) return []
  return a.dims.flatMap((dim, i) => (typesEqual(dim, b.dims[i] ?? null) && i < result.length ? [new Equality(dim, result[i] ?? Dyn)] : []))
}

/** The sizes before and after those that become one. */
const flatten = between((input, result, node) => {
  const [first, last] = flattenedDims(node)
  const [start, end] = [first < 0 ? input.length + first : first, last < 0 ? input.length + last : last]
  return [...equations(result.slice(0, start), input), ...equations(result.slice(start + 1), input.slice(end + 1))]
})

const convolution: AlgebraicRule = (node, gm) => {
  const [input, result] = [dimsOf(inputOf(node)), dimsOf(node)]
  const [, , height, width] = input ?? []
  const [first, second] = result ?? []
  if (height === undefined || width === undefined || first === undefined || second === undefined) return
  const module = moduleOf(gm, node)
  node.type = tensorTypeOf([first, second, calculateOutDimension(height, module, 0), calculateOutDimension(width, module, 1)])
}

const refinements = new RuleTable<RefinementRule>('Refinement rule', {
  'torch.add': elementWise,
  'operator.add': elementWise,
  'operator.iadd': elementWise,
  'torch.flatten': flatten,
  'torch.nn.Conv2d': batch,
  'torch.nn.Linear': batch,
  'torch.nn.BatchNorm2d': all,
  'torch.nn.ReLU': all,
  'torch.nn.AdaptiveAvgPool2d': firstTwo,
  'torch.nn.MaxPool2d': firstTwo,
})

const algebra = new RuleTable<AlgebraicRule>('Rule', { 'torch.nn.Conv2d': convolution })

/** Tells {@link Refine} which sizes a function, or a class of modules, makes equal. PyTorch's register_refinement_rule. @throws ArgumentError if there is a rule already. */
export const registerRefinementRule = (target: RuleTarget, rule: RefinementRule): void => refinements.add(target, rule)

/** Tells {@link Refine.symbolicRelations} how sizes follow from those of the input. PyTorch's register_algebraic_expressions_inference_rule. @throws ArgumentError if there is a rule already. */
export const registerAlgebraicExpressionsInferenceRule = (target: RuleTarget, rule: AlgebraicRule): void => algebra.add(target, rule)

/**
 * Finds equations between the sizes in a graph whose nodes have gradual types: every {@link Dyn} becomes a variable, `~0`, `~1`, … in the order of the graph. PyTorch's Refine.
 *
 *     const refine = new Refine(gm)
 *     refine.refine()
 *     refine.constraints  // [~0 = ~3, …]
 */
export class Refine {
  readonly constraints: Equality[] = []
  readonly traced: GraphModule
  #variables = 0

  constructor(traced: GraphModule) {
    checkCount('Refine', arguments, 1)
    this.traced = traced
  }

  /** Replaces unknown sizes by variables, and collects the equations. @returns true. */
  refine(): boolean {
    for (const node of this.traced.graph.nodes) this.refineNode(node)
    return true
  }

  /** Replaces the sizes that layers compute by expressions of the variables of their input. PyTorch's symbolic_relations. @returns true. */
  symbolicRelations(): boolean {
    for (const node of this.traced.graph.nodes) {
      if (node.op === 'output') node.type = typeOfResult(node)
      else algebra.find(this.traced, node)?.(node, this.traced)
    }
    return true
  }

  /** The type with a new variable for each {@link Dyn} in it. PyTorch's replace_dyn_with_fresh_var. */
  replaceDynWithFreshVar(type: NodeType): NodeType {
    if (type === Dyn) return Var(this.#variables++)
    if (isTensorType(type)) return tensorTypeOf(type.dims.map((dim) => (dim === Dyn ? Var(this.#variables++) : dim)))
    return type instanceof TypeList ? new TypeList(type.types.map((item) => this.replaceDynWithFreshVar(item))) : type
  }

  /** Replaces the unknown sizes of a node by variables, and collects its equations. PyTorch's refine_node. */
  refineNode(node: Node): void {
    node.type = this.replaceDynWithFreshVar(gradualType(node.type))
    if (node.op === 'output') node.type = typeOfResult(node)
    else this.constraints.push(...(refinements.find(this.traced, node)?.(node) ?? []))
  }
}

/** The type of what a graph returns. */
function typeOfResult(node: Node): NodeType {
  const typeOf = (value: unknown): NodeType =>
    value instanceof Node ? (value.type ?? Dyn) : Array.isArray(value) ? new TypeList(value.map(typeOf)) : Dyn
  return typeOf(node.args[0])
}

export type { TensorType }
