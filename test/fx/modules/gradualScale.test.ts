// Gradual types on random graphs, and on graphs of many nodes.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, operator } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { Dyn, GraphTypeChecker, TensorType, checkShapes, inferSymbolicTypes, isConsistent, setInputTypes } from 'tensorfx/fx/experimental'
import { Const, ConstraintGenerator, TVar, iterateTillFixedPoint, solve, transformAllConstraints } from 'tensorfx/fx/experimental/migrateGradualTypes'
import type { Model } from 'tensorfx/fx/experimental/migrateGradualTypes'
import { Linear, ReLU } from 'tensorfx/nn'

/** What a random program does with its values. */
type Step = 'add' | 'linear' | 'relu' | 'transpose' | 'reshape' | 'flatten'

/** A program of layers and operators that knows tensors of rank 2 with 4 columns. */
function program(steps: readonly (readonly [Step, number, number])[]): GraphModule {
  const graph = new Graph()
  const values: Node[] = [graph.placeholder('x'), graph.placeholder('y')]
  for (const [step, a, b] of steps) {
    const [one, other] = [values[a % values.length], values[b % values.length]]
    if (one === undefined || other === undefined) continue
    const made = {
      add: () => graph.callFunction(operator.add, [one, other]),
      linear: () => graph.callModule('linear', [one]),
      relu: () => graph.callModule('relu', [one]),
      transpose: () => graph.callFunction(torch.transpose, [one, 0, 1]),
      reshape: () => graph.callFunction(torch.reshape, [one, [2, 8]]),
      flatten: () => graph.callFunction(torch.flatten, [one, 1]),
    }[step]()
    values.push(made)
  }
  graph.output(values.at(-1))
  return new GraphModule({ linear: new Linear(4, 4), relu: new ReLU() }, graph)
}

const steps = fc.array(fc.tuple(fc.constantFrom<Step>('add', 'linear', 'relu', 'transpose', 'reshape', 'flatten'), fc.nat(10), fc.nat(10)), {
  maxLength: 8,
})
const sizes = fc.constantFrom<readonly number[]>([4, 4], [2, 4], [1, 4], [4, 1], [16])
const hidden = fc.array(fc.boolean(), { minLength: 2, maxLength: 2 })

/** The shape with some sizes unknown. */
const partly = (shape: readonly number[], hide: readonly boolean[]): TensorType => TensorType(shape.map((size, i) => (hide[i] === true ? Dyn : size)))

/** The result of a run; null if it fails. */
function ran(gm: GraphModule, x: readonly number[], y: readonly number[]): readonly number[] | null {
  try {
    return (gm.call(torch.zeros(x), torch.zeros(y)) as Tensor).shape
  } catch {
    return null
  }
}

describe('random graphs', () => {
  it('have the shape that checkShapes says, and fail if it says so', () => {
    fc.assert(
      fc.property(steps, sizes, sizes, (given, x, y) => {
        const gm = program(given)
        const report = checkShapes(gm, { x, y })
        const shape = ran(gm, x, y)
        // Values that the result does not need may be wrong too, and fail as well.
        expect(report.ok).toBe(shape !== null)
        gm.graph.lint()
      }),
    )
  })

  it('that run pass the checker with unknown sizes, and the type of the result is consistent with the run', () => {
    fc.assert(
      fc.property(steps, sizes, sizes, hidden, hidden, (given, x, y, hideX, hideY) => {
        const gm = program(given)
        const shape = ran(gm, x, y)
        if (shape === null) return
        setInputTypes(gm, { x: partly(x, hideX), y: partly(y, hideY) })
        try {
          new GraphTypeChecker({}, gm).typeCheck()
        } catch (error) {
          // What is known of a reshape must divide, as in PyTorch, also if the unknown sizes make up for it.
          expect(String(error)).toMatch(/Cannot reshape/)
          return
        }
        expect(isConsistent(gm.graph.outputNode().type, TensorType(shape))).toBe(true)
        inferSymbolicTypes(gm)
        gm.graph.lint()
      }),
    )
  })

  it('that run have constraints that can be satisfied by the shapes of the run', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(steps, sizes, sizes, async (given, x, y) => {
        const gm = program(given)
        const shape = ran(gm, x, y)
        setInputTypes(gm, { x: TensorType(x), y: TensorType(y) })
        const { status, model } = await solve(transformAllConstraints(gm), { solver: 'search' })
        if (shape === null) return
        expect(status).toBe('sat')
        if (model !== null) expect(isConsistent(typeOfResult(gm, model), TensorType(shape))).toBe(true)
      }),
      { numRuns: 40 },
    )
  })
})

function typeOfResult(gm: GraphModule, model: Model): TensorType | typeof Dyn {
  const generator = new ConstraintGenerator(gm)
  generator.generateConstraints()
  const symbol = generator.symbolDict.get(gm.graph.outputNode().args[0])
  return symbol instanceof TVar ? model.type(Const(symbol.tvar)) : Dyn
}

/** A chain of linear layers, relus and sums. */
const chain = (count: number): GraphModule =>
  program(Array.from({ length: count }, (_, i) => [(['linear', 'relu', 'add'] as const)[i % 3] ?? 'relu', i + 1, i] as const))

describe('graphs of 10,000 nodes', () => {
  it('are checked, refined and unified without deep stacks', { timeout: 60_000 }, () => {
    const gm = chain(10_000)
    setInputTypes(gm, { x: TensorType([Dyn, 4]), y: TensorType([Dyn, 4]) })
    new GraphTypeChecker({}, gm).typeCheck()
    inferSymbolicTypes(gm)
    expect(String(gm.graph.outputNode().type)).toMatch(/^TensorType\[\(~\d+, 4\)\]$/)
  })

  it('are checked by checkShapes', { timeout: 60_000 }, () => {
    expect(checkShapes(chain(10_000), { x: ['n', 4], y: ['n', 4] }).ok).toBe(true)
  })

  it('give constraints that are transformed without deep stacks', { timeout: 60_000 }, () => {
    const gm = program(Array.from({ length: 10_000 }, (_, i) => ['relu', i + 1, 0] as const))
    setInputTypes(gm, { x: TensorType([2, 4]) })
    const [constraints, counter] = new ConstraintGenerator(gm).generateConstraints()
    const [simple] = iterateTillFixedPoint(constraints, counter)
    expect(simple).not.toBe(constraints)
    const [again] = iterateTillFixedPoint(simple, counter)
    expect(again).toBe(simple)
  })
})
