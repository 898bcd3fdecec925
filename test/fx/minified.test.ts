// Minified programs: what a trace still knows of their names, and what it cannot know.
import { transformSync } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

/** The value of an expression after a minifier was there. */
function minified<T>(expression: string, names: Readonly<Record<string, unknown>> = {}): T {
  const { code } = transformSync(`export const value = ${expression}`, { minify: true, format: 'cjs' })
  const module: { exports: { value?: T } } = { exports: {} }
  new Function('module', 'exports', ...Object.keys(names), code)(module, module.exports, ...Object.values(names))
  const { value } = module.exports
  if (value === undefined) throw new Error('the minified code exports nothing')
  return value
}

const placeholders = (gm: { readonly graph: fx.Graph }): string[] => gm.graph.findNodes({ op: 'placeholder' }).map((n) => String(n.target))

describe('a minified function', () => {
  const fn = minified<(x: Tensor, mask: Tensor | null, options?: { scale?: number }) => Tensor>(
    '(input, mask, { scale = 2 } = {}) => (mask === null ? input.mul(scale) : input.mul(mask))',
  )

  it('is minified: its parameters have other names', () => {
    expect(String(fn)).not.toMatch(/input|mask/)
  })

  it('gives placeholders the names of options, which are properties; other parameters have the names of the minifier', () => {
    const affine = minified<(x: Tensor, options: { scale?: number; shift?: Tensor }) => Tensor>(
      '(input, { scale = 2, shift } = {}) => input.mul(scale).add(shift)',
    )
    const names = placeholders(fx.symbolicTrace(affine))
    expect(names).toHaveLength(3)
    expect(names.slice(1)).toEqual(['scale', 'shift'])
    expect(names[0]).not.toBe('input')
  })

  it('computes what it computed', () => {
    const gm = fx.symbolicTrace((x: Tensor) => fn(x, null, { scale: 3 }))
    expect(gm.call(torch.tensor([1, -2])).toArray()).toEqual([3, -6])
  })

  it('takes concreteArgs by position; by name, the message says why they are unknown', () => {
    expect(fx.symbolicTrace(fn, { concreteArgs: [fx.PH, null, { scale: 2 }] }).graph.findNodes({ op: 'call_method', target: 'mul' })).toHaveLength(1)
    expect(() => fx.symbolicTrace(fn, { concreteArgs: { mask: null } })).toThrow(
      /no parameter 'mask'; its parameters are \w+, \w+, arg2, scale\. Minifiers rename parameters: in minified code pass an array, one value for each\./,
    )
  })
})

it('a minified module keeps the names of its layers and methods', () => {
  const Net = minified<new () => nn.Module & { forward(x: Tensor): Tensor }>(
    'class Net extends nn.Module { constructor() { super(); this.hidden = new nn.Linear(2, 2) } forward(features) { return torch.relu(this.hidden.call(features)) } }',
    { nn, torch },
  )
  const gm = fx.symbolicTrace(new Net())
  expect(placeholders(gm)).not.toContain('features')
  expect([...gm.graph.nodes].filter((n) => n.op !== 'placeholder').map((n) => n.name)).toEqual(['hidden', 'relu', 'output'])
})
