// What is seen of one run: whole, by name, for modules and for functions.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { contained } from '../../src/debug/runs/isolated.ts'
import { lossOf } from '../../src/debug/runs/loss.ts'
import { moduleOf, observe, renamed, tensorsOf } from '../../src/debug/runs/observe.ts'
import type { Like, Seen, Setup } from '../../src/debug/runs/observe.ts'

const t = torch.tensor

class Model extends nn.Module {
  constructor() {
    super()
    this.registerParameter('w', new nn.Parameter(t([2, 3])))
    this.registerBuffer('count', t([0, 0]))
    Object.assign(this, { constant: t([5, 5]), label: 'text' })
  }
  forward({ x, more }: { x: Tensor; more: readonly Tensor[] }, y: Tensor): unknown {
    const [w, count, constant] = ['w', 'count', 'constant'].map((name) => Reflect.get(this, name) as Tensor) as [Tensor, Tensor, Tensor]
    count.add_(1)
    y.add_(1)
    return [x.mul(w).add(constant), (more[1] as Tensor).mul(2), 'text']
  }
}

const inputs = (): unknown[] => [{ x: t([1, 1], { requiresGrad: true }), more: [t([7]), t([8], { requiresGrad: true })] }, t([1])]
const see = (model: Parameters<typeof observe>[0], given: readonly unknown[], setup: Partial<Setup> = {}): Seen =>
  contained((trace) => observe(model, given, { onlyFwd: false, lossOf, ...setup }, trace))
const plain = (values: ReadonlyMap<string, Tensor | null>): unknown =>
  Object.fromEntries([...values].map(([name, value]) => [name, value?.toArray() ?? null]))
const whole = ({ own, output, loss, gradients, parameters, buffers, inputs: given, inputGradients }: Seen): unknown => ({
  own: plain(own),
  output: (output as unknown[]).map((value) => (value instanceof torch.Tensor ? (value as Tensor).toArray() : value)),
  loss: loss?.item() ?? null,
  gradients: plain(gradients),
  parameters: plain(parameters),
  buffers: plain(buffers),
  inputs: plain(given),
  inputGradients: plain(inputGradients),
})

describe('a run of a module', () => {
  it('shows results, gradients, parameters, buffers and inputs, and changes none of them', () => {
    const model = new Model()
    const given = inputs()
    expect(whole(see(model, given))).toMatchInlineSnapshot(`
      {
        "buffers": {
          "constant": [
            5,
            5,
          ],
          "count": [
            1,
            1,
          ],
        },
        "gradients": {
          "w": [
            0.171875,
            0.28125,
          ],
        },
        "inputGradients": {
          "input 0[0]": [
            0.34375,
            0.84375,
          ],
          "input 0[1]": null,
          "input 0[2]": [
            0.6875,
          ],
          "input 1": null,
        },
        "inputs": {
          "input 0[0]": [
            1,
            1,
          ],
          "input 0[1]": [
            7,
          ],
          "input 0[2]": [
            8,
          ],
          "input 1": [
            2,
          ],
        },
        "loss": 8.953125,
        "output": [
          [
            7,
            8,
          ],
          [
            16,
          ],
          "text",
        ],
        "own": {},
        "parameters": {
          "w": [
            2,
            3,
          ],
        },
      }
    `)
    expect(whole(see(model, given, { onlyFwd: true }))).toMatchInlineSnapshot(`
      {
        "buffers": {
          "constant": [
            5,
            5,
          ],
          "count": [
            1,
            1,
          ],
        },
        "gradients": {},
        "inputGradients": {
          "input 0[0]": null,
          "input 0[1]": null,
          "input 0[2]": null,
          "input 1": null,
        },
        "inputs": {
          "input 0[0]": [
            1,
            1,
          ],
          "input 0[1]": [
            7,
          ],
          "input 0[2]": [
            8,
          ],
          "input 1": [
            2,
          ],
        },
        "loss": null,
        "output": [
          [
            7,
            8,
          ],
          [
            16,
          ],
          "text",
        ],
        "own": {},
        "parameters": {
          "w": [
            2,
            3,
          ],
        },
      }
    `)
    expect([plain(tensorsOf(model).buffers), (given[1] as Tensor).toArray()]).toEqual([{ count: [0, 0], constant: [5, 5] }, [1]])
  })

  it('that is moved by rounding has other numbers everywhere, but not far', () => {
    const scale = new (class extends nn.Module {
      constructor() {
        super()
        this.registerParameter('p', new nn.Parameter(t([0.3])))
        this.registerBuffer('b', t([0.7]))
      }
      forward(x: Tensor): unknown {
        return [x.mul(Reflect.get(this, 'p') as Tensor), (Reflect.get(this, 'b') as Tensor).mul(1)]
      }
    })()
    const [exact, moved] = [see(scale, [t([0.1])]), see(scale, [t([0.1])], { moved: 1 })]
    const numbers = (seen: Seen): number[] =>
      [...(seen.output as Tensor[]), ...seen.parameters.values(), ...seen.buffers.values(), ...seen.inputs.values()].map((value) =>
        Number(value.toTypedArray()[0]),
      )
    const others = numbers(moved)
    numbers(exact).forEach((value, i) => {
      expect(others[i]).not.toBe(value)
      expect(others[i]).toBeCloseTo(value, 5)
    })
  })
})

describe('a run of a function', () => {
  const model = new Model()
  const { w, count } = Object.fromEntries([...tensorsOf(model).parameters, ...tensorsOf(model).buffers]) as Record<string, Tensor>
  const like: Like = { module: model, buffers: new Map() }

  it('has the names of the module that it is compared with, for its tensors or others of the same values', () => {
    const other = t([2, 3], { requiresGrad: true })
    const alien = t([9], { requiresGrad: true })
    const run = (x: Tensor): Tensor[] => [x.mul(other), alien.mul(2)]
    const seen = see(run, [t([1, 1])], { like })
    expect([plain(seen.parameters), plain(seen.own), plain(seen.gradients)]).toMatchInlineSnapshot(`
      [
        {
          "parameter 0": [
            9,
          ],
          "w": [
            2,
            3,
          ],
        },
        {
          "parameter 0": [
            9,
          ],
          "w": [
            2,
            3,
          ],
        },
        {
          "parameter 0": [
            0.6875,
          ],
          "w": [
            0.171875,
            0.28125,
          ],
        },
      ]
    `)
    expect(seen.own.get('w')).toBe(other)
    // One of another dtype or shape with the same values is another.
    for (const wrong of [t([2, 3], { dtype: 'float64', requiresGrad: true }), t([[2, 3]], { requiresGrad: true })])
      expect([...see(() => [wrong.mul(2)], [], { like }).parameters.keys()]).toEqual(['w', 'parameter 0'])
    expect([...see((x: Tensor) => [x.mul(w as Tensor)], [t([1, 1])], { like }).parameters.keys()]).toEqual(['w'])
    expect([...see((x: Tensor) => [x.mul(2)], [t([1, 1], { requiresGrad: true })]).parameters.keys()]).toEqual([])
  })

  it('has as buffers what it writes to', () => {
    const own = t([0, 0])
    const seen = see((x: Tensor) => [x.mul(own.add_(1))], [t([1, 1])], { like })
    expect([plain(seen.buffers), own.toArray()]).toEqual([{ count: [1, 1], constant: [5, 5] }, [0, 0]])
    const module = see((x: Tensor) => [x.mul((count as Tensor).add_(2))], [t([1, 1])], { like })
    expect([plain(module.buffers), (count as Tensor).toArray()]).toEqual([{ count: [2, 2], constant: [5, 5] }, [0, 0]])
  })

  it('is that of the module behind it', () => {
    expect([
      moduleOf(model),
      moduleOf(Object.assign(() => {}, { module: model })),
      moduleOf(Object.assign(() => {}, { module: 3 })),
      moduleOf(() => {}),
    ]).toEqual([model, model, null, null])
  })

  it('gets the names of another run, by their ends or their values', () => {
    const maps = (names: Readonly<Record<string, Tensor>>): Pick<Seen, 'parameters' | 'gradients' | 'buffers'> => ({
      parameters: new Map(Object.entries(names)),
      gradients: new Map(Object.entries(names)),
      buffers: new Map(),
    })
    const seen = see((x: Tensor) => [x], [t([1])])
    const own = { ...seen, ...maps({ 'inner.w': t([1, 2]), b: t([3]), other: t([4]) }) }
    const names = { ...seen, ...maps({ w: t([9, 9]), b: t([3]), same: t([4]), gone: t([5, 5, 5]) }) }
    const { seen: result, missing } = renamed(own, names)
    expect([plain(result.parameters), plain(result.gradients), missing]).toEqual([
      { w: [1, 2], b: [3], same: [4] },
      { w: [1, 2], b: [3], same: [4] },
      ["'gone' has no counterpart in the compiled model"],
    ])
  })
})
