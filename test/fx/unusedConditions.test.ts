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
  expect(() => symbolicTrace((x: Tensor) => x.view([(x.shape[0] ?? 0) / 2, -1]))).toThrow(/and -1 for a size that follows from others/)
})
