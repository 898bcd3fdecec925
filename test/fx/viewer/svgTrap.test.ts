// Graphviz's code may trap, which leaves its memory in no known state.
import { Graphviz } from '@hpcc-js/wasm-graphviz'
import { afterEach, expect, test, vi } from 'vitest'
import { renderSvg } from 'tensorfx/fx/viewer'

afterEach(() => vi.restoreAllMocks())

const trap = (): never => {
  throw new WebAssembly.RuntimeError('table index is out of bounds')
}

test('a drawing whose code traps is made by a new instance', async () => {
  await renderSvg('digraph { a }')
  const [layout, unload] = [vi.spyOn(Graphviz.prototype, 'layout').mockImplementationOnce(trap), vi.spyOn(Graphviz, 'unload')]
  expect(await renderSvg('digraph { a -> b }')).toMatch(/^<svg[^]*<\/svg>\s*$/)
  expect([layout.mock.calls.length, unload.mock.calls.length]).toEqual([2, 1])
})

test('what traps twice is an error that says so', async () => {
  vi.spyOn(Graphviz.prototype, 'layout').mockImplementation(trap)
  await expect(renderSvg('digraph { a -> b }')).rejects.toThrow(
    "renderSvg: Graphviz cannot draw the text of argument 'dot': table index is out of bounds",
  )
})

test('text that is not DOT is an error at once', async () => {
  await renderSvg('digraph { a -> b }')
  const layout = vi.spyOn(Graphviz.prototype, 'layout')
  await expect(renderSvg('no graph')).rejects.toThrow("renderSvg: Graphviz cannot draw the text of argument 'dot': syntax error in line 1")
  expect(layout).toHaveBeenCalledTimes(1)
})
