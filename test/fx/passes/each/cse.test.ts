// CSEPass: PyTorch's test_cse_pass. Each case: how many nodes are left, the same values, and a second run changes nothing.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { NormalizeArgs } from 'tensorfx/fx/experimental'
import { CSEPass } from 'tensorfx/fx/passes'
import { randomFrom } from '../../../../scripts/fuzz/random.mjs'

function check(program: (x: Tensor) => unknown, removed: number, pass: CSEPass = new CSEPass(), compare = true): void {
  const gm = symbolicTrace(program)
  const { graphModule, modified } = pass.run(gm)
  graphModule.graph.lint()
  expect(gm.graph.nodes.length - graphModule.graph.nodes.length).toBe(removed)
  expect(modified).toBe(removed > 0)
  expect(pass.run(graphModule).modified).toBe(false)
  if (!compare) return
  const x = torch.randn([2, 3])
  const flat = (value: unknown): Tensor[] => (Array.isArray(value) ? (value as unknown[]).flatMap(flat) : [value as Tensor])
  const [got, want] = [flat(graphModule.call(x)), flat(program(x))]
  expect(got.length).toBe(want.length)
  for (const [i, value] of got.entries()) expect(torch.allclose(value, want[i] as Tensor)).toBe(true)
}

describe('CSEPass', () => {
  it('test_nochange', () => check((x) => [x, x.add(1), torch.cos(x)], 0))
  it('test_empty', () => check((x) => x, 0))
  it('test_immutable_list_type: lists are compared by their elements', () => check((x) => [x.sum([0]), x.sum([0]), x.sum([1])], 1))
  it('test_immutable_list_multiple_entries', () => check((x) => [x.sum([0, 1]), x.sum([0, 1]), x.sum([1, 0])], 1))
  it('test_simple', () => check((x) => torch.cos(x).add(torch.cos(x)), 1))
  it('test_simple_2: duplicates of duplicates', () =>
    check((x) => {
      const [a, b, c] = [torch.cos(x), torch.cos(x), torch.cos(x)]
      return a.add(b).add(c).add(a.add(b))
    }, 3))
  it('test_two_args_default: an option with its default is another spelling, until arguments are normalized', () => {
    const program = (x: Tensor): Tensor[] => [
      torch.sum(x, { dim: 1 }),
      torch.sum(x, { dim: 1, keepdim: false }),
      torch.sum(x, { dim: 1, keepdim: false }),
      torch.sum(x, { dim: 1 }),
      torch.sum(x, { dim: 1, keepdim: true }),
    ]
    check(program, 2)
    const normalized = new NormalizeArgs(symbolicTrace(program)).transform()
    expect(normalized.graph.nodes.length - new CSEPass().run(normalized).graphModule.graph.nodes.length).toBe(3)
  })
  it('test_two_args', () => check((x) => [x.sum({ dim: 1 }), x.sum({ dim: 0 }), x.sum({ dim: 1 })], 1))
  it('test_simple_multiple_same_ops', () => check((x) => torch.sum(x).add(torch.sum(x)).add(torch.sum(x)), 2))
  it('test_nested_immutable_list_type', () => check((x) => [torch.cat([x, x]), torch.cat([x, x]), torch.cat([x, x.add(1)])], 1))
  it('test_kwarg', () => check((x) => [torch.sum(x, { dim: 0 }), torch.sum(x, { dim: 0 })], 1))
  it('test_banned_list: banned operators are left alone', () => {
    const program = (x: Tensor): Tensor => torch.cos(x).add(torch.cos(x)).add(torch.sin(x)).add(torch.sin(x))
    check(program, 1, new CSEPass([torch.cos]))
    check(program, 2)
  })
  it('test_rand_like: random operators are left alone', () =>
    check((x) => torch.nn.functional.dropout(x).add(torch.nn.functional.dropout(x)), 0, new CSEPass(), false))
  it('test_rand_n: draws are draws, of functions and of methods', () => {
    const graph = new Graph()
    graph.output([graph.callFunction(torch.randn, [[2, 3]]), graph.callFunction(torch.randn, [[2, 3]])])
    expect(new CSEPass().run(new GraphModule({}, graph)).modified).toBe(false)
    check((x) => [x.abs().clamp(0, 1).bernoulli(), x.abs().clamp(0, 1).bernoulli()], 2, new CSEPass(), false)
  })
  it('keeps apart what was computed before and after a write', () =>
    check((x) => {
      const y = x.mul(1)
      const before = torch.cos(y)
      y.add_(1)
      return [before, torch.cos(y), y]
    }, 0))
  it('keeps 0 and -0, 1 and "1" apart', () => check((x) => [x.mul(0), x.mul(-0), x.mul(0)], 1))
  it('test_random: programs with many duplicates keep their results', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { int } = randomFrom(seed)
      const picks = Array.from({ length: 30 }, () => [int(4), int(1000), int(1000)] as const)
      const program = (x: Tensor): Tensor => {
        const values = [x]
        for (const [op, i, j] of picks) {
          const [a, b] = [values[i % values.length] as Tensor, values[j % values.length] as Tensor]
          values.push([() => torch.add(a, b), () => torch.cos(a), () => torch.mul(a, 0.5), () => torch.sub(a, b)][op]?.() as Tensor)
        }
        return values.reduce((sum, v) => sum.add(v))
      }
      const gm = symbolicTrace(program)
      const { graphModule } = new CSEPass().run(gm)
      const x = torch.randn([3])
      expect(torch.allclose(graphModule.call(x) as Tensor, program(x), { rtol: 1e-4, atol: 1e-4 })).toBe(true)
    }
  })
})
