// What compile reports: why it compiled again, explain's text, and what a backward outside cannot do.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { explain } from 'tensorfx/compile'
import { attempt } from '../against.ts'

describe('recompileReasons', () => {
  it('tells calls with and without gradients apart by their arguments, not by their path', () => {
    const w = torch.ones([2]).requiresGrad_()
    const f = compile((x: Tensor) => x.mul(w))
    f(torch.ones([2]))
    noGrad(() => f(torch.ones([2])))
    expect(f.recompileReasons()).toEqual(['the grad mode was on, is now off'])
  })

  it('tells arguments of other types apart before the function runs', () => {
    const f = compile((x: Tensor, k: number | string) => x.add(Number(k)))
    f(torch.ones([2]), 1)
    f(torch.ones([2]), '1')
    expect(f.recompileReasons()).toEqual(['arguments of other shapes, dtypes or structure: float32[2], string'])
  })
})

it('explain prints graphs, breaks, operators and times, in this order', () => {
  const report = explain((x: Tensor) => (x.sum().item() > 0 ? x.add(1) : x))(torch.ones([2]))
  const lines = String(report).split('\n')
  expect(lines.slice(0, 6)).toEqual([
    'Graph Count: 2',
    'Graph Break Count: 1',
    'Op Count: 2',
    'Break Reasons:',
    '  Break Reason 1:',
    '    Reason: the value of a tensor is read (item(), toArray(), printing)',
  ])
  const rest = lines.slice(lines.indexOf('Ops per Graph:'))
  expect(rest.slice(0, 6)).toEqual(['Ops per Graph:', '  Ops 1:', '    torch.sum', '  Ops 2:', '    torch.add', 'Compile Times (ms):'])
  expect(rest.slice(6).map((line) => line.replace(/\d+\.\d\d$/, 'ms'))).toEqual(['  1: ms', '  2: ms'])
})

it('a backward that needs an overwritten tensor names the operator, though its graph does not keep the tensor', () => {
  const x = torch.tensor([1, 2]).requiresGrad_()
  const f = compile(() => x.exp().sin())
  f()
  const y = f()
  noGrad(() => x.add_(1))
  // Neither derivative reads x: sin's reads its argument, which is another tensor.
  expect(attempt(() => y.sum().backward())).toBe(undefined)
  const g = compile((h: Tensor) => [h.square(), h] as const)
  const [squared, h] = g(x.mul(2))
  noGrad(() => h.add_(1))
  expect(attempt(() => squared.sum().backward())).toMatchObject({ name: 'AutogradError', message: expect.stringContaining('torch.square') })
})
