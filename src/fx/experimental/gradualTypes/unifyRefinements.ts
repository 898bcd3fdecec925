// Which sizes of a graph are equal: the equations of Refine, solved. PyTorch's torch.fx.experimental.unify_refinements.
import { ShapeError } from '../../../errors/index.ts'
import { checkGraph, checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkArray, checkCount } from '../../../protocol/index.ts'
import { tuple } from '../../graph/pythonValues.ts'
import type { Graph } from '../../graph/graph.ts'
import type { NodeType } from '../../../protocol/index.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import { Refine } from './refine.ts'
import { Equality } from './refinementTypes.ts'
import { TypeList, gradualType, isTensorType, tensorTypeOf, typesEqual } from './tensorType.ts'
import type { Dimension } from './tensorType.ts'
import { unify } from '../unification/core.ts'
import type { Substitution } from '../unification/core.ts'
import { isVar } from '../unification/variable.ts'

/** The two sides of equations. PyTorch's convert_eq. */
export function convertEq(equations: readonly Equality[]): readonly [lhs: readonly unknown[], rhs: readonly unknown[]] {
  checkCount('convertEq', arguments, 1)
  checkArray('convertEq', 'equations', equations)
  equations.forEach((item, i) => checkArgument(item instanceof Equality, 'convertEq', `equations[${i}]`, 'an Equality', item))
  return tuple(tuple(...equations.map(({ lhs }) => lhs)), tuple(...equations.map(({ rhs }) => rhs)))
}

/** The values of variables that satisfy all equations; false if there are none. PyTorch's unify_eq. */
export const unifyEq = (equations: readonly Equality[]): Substitution | false => unify(...convertEq(equations))

/**
 * The type, or size, with the values of variables in their place; also in arrays. PyTorch's substitute_solution_one_type.
 */
export function substituteSolutionOneType<T>(mapping: ReadonlyMap<unknown, unknown>, type: T): unknown {
  checkCount('substituteSolutionOneType', arguments, 2)
  if (isVar(type)) return mapping.has(type) ? mapping.get(type) : type
  if (isTensorType(type)) return substituted(mapping, type)
  if (type instanceof TypeList) return substituted(mapping, type)
  if (!Array.isArray(type)) return type
  const items = type.map((item: unknown) => substituteSolutionOneType(mapping, item))
  return Object.getOwnPropertySymbols(type).length > 0 ? tuple(...items) : items
}

const isDimension = (value: unknown): value is Dimension => typeof value === 'number' || (typeof value === 'object' && value !== null)

/** The type with the values of variables in their place. */
function substituted(mapping: ReadonlyMap<unknown, unknown>, type: NodeType): NodeType {
  if (isVar(type)) {
    const value = mapping.get(type)
    return typeof value === 'object' && value !== null && 'isTypeValue' in value && (isTensorType(value) || isVar(value)) ? value : type
  }
  if (type instanceof TypeList) return new TypeList(type.types.map((item) => substituted(mapping, item)))
  if (!isTensorType(type)) return type
  return tensorTypeOf(
    type.dims.map((dim) => {
      const value = mapping.get(dim)
      return isDimension(value) ? value : dim
    }),
  )
}

/**
 * Writes the values of variables into the types of a graph's nodes. Variables that stand for variables are followed to the end. PyTorch's substitute_all_types.
 */
export function substituteAllTypes(graph: Graph, mapping: ReadonlyMap<unknown, unknown>): void {
  checkCount('substituteAllTypes', arguments, 2)
  checkGraph('substituteAllTypes', graph)
  checkArgument(mapping instanceof Map, 'substituteAllTypes', 'mapping', 'a Map', mapping)
  const values = resolved(mapping)
  for (const node of graph.nodes) node.type = substituted(values, gradualType(node.type))
}

/** Every variable with its final value. Each is followed once, whatever the length of the chains. */
function resolved(mapping: ReadonlyMap<unknown, unknown>): Map<unknown, unknown> {
  const result = new Map<unknown, unknown>()
  for (const start of mapping.keys()) {
    const path: unknown[] = []
    let at: unknown = start
    for (; mapping.has(at) && !result.has(at); at = mapping.get(at)) path.push(at)
    const value = result.has(at) ? result.get(at) : at
    for (const variable of path) result.set(variable, value)
  }
  return result
}

function refineOnce(gm: GraphModule): Refine {
  const refine = new Refine(gm)
  refine.refine()
  const solution = unifyEq(refine.constraints)
  if (solution === false) {
    throw new ShapeError(
      `infer symbolic types: sizes of the graph contradict each other at ${String(firstContradiction(refine.constraints))}; run GraphTypeChecker first.`,
    )
  }
  substituteAllTypes(gm.graph, solution)
  return refine
}

/** The first equation that those before it do not allow. */
function firstContradiction(equations: readonly Equality[]): Equality | undefined {
  let [possible, impossible] = [0, equations.length]
  while (impossible - possible > 1) {
    const middle = Math.floor((possible + impossible) / 2)
    if (unifyEq(equations.slice(0, middle)) === false) impossible = middle
    else possible = middle
  }
  return equations[impossible - 1]
}

/**
 * Gives equal unknown sizes the same variable, and sizes that layers compute an expression of the variables of their input. The graph must have been checked by
 * GraphTypeChecker. It goes over the graph twice, because which sizes of a sum are equal shows only when those of its operands are known. PyTorch's infer_symbolic_types.
 * @throws ShapeError if sizes contradict each other.
 */
export function inferSymbolicTypes(gm: GraphModule): void {
  checkCount('inferSymbolicTypes', arguments, 1)
  checkGraphModule('inferSymbolicTypes', gm)
  refineOnce(gm)
  refineOnce(gm).symbolicRelations()
}

/** Like {@link inferSymbolicTypes}, but goes over the graph once. PyTorch's infer_symbolic_types_single_pass. */
export function inferSymbolicTypesSinglePass(gm: GraphModule): void {
  checkCount('inferSymbolicTypesSinglePass', arguments, 1)
  checkGraphModule('inferSymbolicTypesSinglePass', gm)
  refineOnce(gm)
}

/** Whether the nodes of two graphs, in order, have the same types. PyTorch's check_for_type_equality. */
export function checkForTypeEquality(one: Graph, other: Graph): boolean {
  checkCount('checkForTypeEquality', arguments, 2)
  checkGraph('checkForTypeEquality', one, 'one')
  checkGraph('checkForTypeEquality', other, 'other')
  const others = [...other.nodes]
  return [...one.nodes].every((node, i) => typesEqual(node.type, others[i]?.type ?? null)) && one.nodes.length === others.length
}
