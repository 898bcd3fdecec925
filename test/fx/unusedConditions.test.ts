// A branch on a traced value cannot be seen; the comparison that it leaves behind can.
import { afterEach, expect, test, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { TraceError, Tracer, bool, symbolicTrace } from 'tensorfx/fx'
import type { Proxied } from 'tensorfx/fx'

function branches(x: Tensor): Tensor {
  if (x.sum().gt(0)) return x
  return x.neg()
}

afterEach(() => void vi.restoreAllMocks())
const firstLines = (warn: ReturnType<typeof vi.spyOn>): unknown[] => warn.mock.calls.map((call: readonly unknown[]) => String(call[0]).split('\n')[0])
const spy = (): ReturnType<typeof vi.spyOn> => vi.spyOn(console, 'warn').mockImplementation(() => {})

test('a comparison that nothing uses is told of, with its place and what to do', () => {
  const warn = spy()
  symbolicTrace(branches)
  expect(warn.mock.calls).toHaveLength(1)
  const text = String(warn.mock.calls[0]?.[0])
  expect(text).toMatch(/nothing uses the result of gt \(node 'gt'\) at branches \(.*unusedConditions\.test\.ts:9:\d+\)/)
  expect(text).toContain('torch.where')
})

test('functions of the operator table count as methods do', () => {
  const warn = spy()
  symbolicTrace((x: Tensor) => (torch.logicalAnd(x, x) ? x : x.neg()))
  expect(String(warn.mock.calls[0]?.[0])).toContain('torch.logical_and')
})

test("'error' makes it a TraceError at the place", () => {
  expect(() => new Tracer({ unusedConditions: 'error' }).trace(branches)).toThrow(TraceError)
  expect(() => new Tracer({ unusedConditions: 'error' }).trace(branches)).toThrow(/at branches \(.*:9:/)
})

test("'ignore' is silent, and so is a trace whose comparisons are used", () => {
  const warn = spy()
  new Tracer({ unusedConditions: 'ignore' }).trace(branches)
  symbolicTrace((x: Tensor) => torch.where(x.gt(0), x, x.neg()))
  expect(warn).not.toHaveBeenCalled()
})

test('a tracer that knew the answer is not suspected', () => {
  class Knows extends Tracer {
    override toBool(_value: Proxied): boolean {
      return true
    }
  }
  const warn = spy()
  symbolicTrace((x: Tensor) => (bool(x.sum().gt(0)) ? x.relu() : x), { tracer: new Knows() })
  expect(warn).not.toHaveBeenCalled()
})

const FLAGS: Readonly<Record<string, (x: Tensor, flag: unknown) => unknown>> = {
  // oxlint-disable-next-line unicorn/prefer-ternary -- the statement is what is tested
  if: (x, flag) => {
    if (flag) return x.sin()
    return x.cos()
  },
  not: (x, flag) => {
    if (!flag) return x.sin()
    return x.cos()
  },
  '?:': (x, flag) => (flag ? x.sin() : x.cos()),
  '&&': (x, flag) => flag && x.sin(),
  '||': (x, flag) => flag || x.sin(),
}

test.each(Object.keys(FLAGS))('an argument that is a condition is told of: %s', (kind) => {
  const warn = spy()
  const fn = FLAGS[kind] as (x: Tensor, flag: unknown) => unknown
  symbolicTrace(fn)
  expect(firstLines(warn)).toEqual([
    `symbolic tracing: ${fn.name || 'the function'} takes its argument 'flag' for a condition, and a traced value is always true.`,
  ])
  expect(() => new Tracer({ unusedConditions: 'error' }).trace(fn)).toThrow("takes its argument 'flag' for a condition")
  warn.mockClear()
  symbolicTrace(fn, { concreteArgs: { flag: true } })
  new Tracer({ unusedConditions: 'ignore' }).trace(fn)
  expect(warn).not.toHaveBeenCalled()
})

test('arguments that are used in other ways are not', () => {
  const warn = spy()
  const object = { flag: true, x: false }
  symbolicTrace((x: Tensor, flag: Tensor) => {
    // if (flag) in a comment, 'if (flag)' in a string
    const text = 'if (flag)'
    if (object.flag && !object.x && text.length > 0 && flag !== null) return x.add(flag)
    return x.mul(flag ?? 1)
  })
  expect(warn).not.toHaveBeenCalled()
})

class Inner extends nn.Module {
  forward(x: Tensor, mask: Tensor | null = null): Tensor {
    return mask ? x.add(mask) : x
  }
}

test('so is one of a module that the traced one calls, once, if it gets a traced value', () => {
  class Outer extends nn.Module {
    readonly inner = new Inner()
    forward(x: Tensor, mask: Tensor): Tensor {
      return this.inner.call(this.inner.call(this.inner.call(x), mask), mask)
    }
  }
  const warn = spy()
  symbolicTrace(new Outer())
  // The first call has no mask, so that its branch is right.
  expect(firstLines(warn)).toEqual(["symbolic tracing: Inner.forward takes its argument 'mask' for a condition, and a traced value is always true."])
})

test('a parameter that nothing uses is told of; one whose shape is read is used', () => {
  class Model extends nn.Module {
    readonly weight = new nn.Parameter(torch.ones([2]))
    readonly table = new nn.Parameter(torch.ones([3]))
    forward(x: Tensor): Tensor {
      return this.weight ? x.mul(this.table.shape[0] ?? 1) : x
    }
  }
  const warn = spy()
  symbolicTrace(new Model())
  expect(warn.mock.calls).toHaveLength(1)
  expect(String(warn.mock.calls[0]?.[0])).toMatch(/nothing uses 'weight' \(node 'weight'\) at Model\.forward/)
})

test('arithmetic with the size of a traced tensor says what to write', () => {
  const message = /^a size of a traced tensor was used as a number.*[^]*view\(\[B, T, heads, -1\]\)[^]*operator\.floordiv/
  expect(() => symbolicTrace((x: Tensor) => x.view([(x.shape[0] ?? 0) / 2, -1]))).toThrow(message)
  expect(() => symbolicTrace((x: Tensor) => x.view([x.size(0) / 2, -1]))).toThrow(message)
  expect(() => symbolicTrace((x: Tensor) => x.view([Number(x) / 2, -1]))).toThrow(/^a traced value was used as a plain value/)
})
