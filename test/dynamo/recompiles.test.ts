// How many graphs a series of shapes has, next to PyTorch (test/goldens/symbols/recompiles.json): never more.
import { expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { Backend } from 'tensorfx/compile'
import recorded from '../goldens/symbols/recompiles.json' with { type: 'json' }

type Program = (x: Tensor, y: Tensor & number) => Tensor

/** The functions of the golden. */
const functions: Readonly<Record<string, Program>> = {
  'lambda x: x + 1': (x) => x.add(1),
  'lambda x, y: x + y': (x, y) => x.add(y),
  'lambda x: x * x.shape[0]': (x) => x.mul(x.shape[0] ?? 0),
  'lambda x: x.sin() if x.shape[0] > 4 else x.cos()': (x) => ((x.shape[0] ?? 0) > 4 ? x.sin() : x.cos()),
  'lambda x: x.view(-1, 2)': (x) => x.view(-1, 2),
  'lambda x: torch.zeros(int(x.shape[0]))': (x) => torch.zeros([x.shape[0] ?? 0]),
  'lambda x: x[:3]': (x) => x.slice(0, 0, 3),
  'lambda c, x: torch.cat([c, x])': (c, x) => torch.cat([c, x]),
  'lambda x: x @ x.t()': (x) => x.matmul(x.t()),
  'lambda x, n: x * n': (x, n) => x.mul(n),
  'lambda x, n: x + n': (x, n) => x.add(n),
}

const backend: Backend =
  (gm) =>
  (...inputs) =>
    gm.forward(...inputs)

/** Arguments of the golden: a list is a shape. */
const valuesOf = (args: readonly (readonly number[] | number)[]): Parameters<Program> =>
  args.map((arg) => (typeof arg === 'number' ? arg : torch.ones(arg))) as unknown as Parameters<Program>

it.each(recorded.cases.map((one, i) => [i, one.dynamic, one.function, one] as const))('case %d, dynamic: %s: %s', (_, dynamic, name, golden) => {
  const f = functions[name]
  if (f === undefined) expect.fail(`the golden has a function that this file does not know: ${name}`)
  const compiled = compile(f, { backend, ...(dynamic === null ? {} : { dynamic }) })
  golden.calls.forEach((args, i) => {
    const values = valuesOf(args)
    expect(compiled(...values).toArray()).toEqual(f(...values).toArray())
    expect(compiled.graphs().length, `after call ${i}`).toBeLessThanOrEqual(golden.graphs[i] ?? 0)
  })
  // PyTorch names the dimension that did not fit.
  const [first] = golden.failures.flat()
  const dimension = /tensor '(\w+)' size mismatch at index (\d+)\. expected (\d+), actual (\d+)/.exec(first ?? '')
  const changed = compiled.recompileReasons()[0]
  if (dimension === null || dynamic !== null || changed === undefined || !changed.includes('shape')) return
  expect(changed).toContain(`(l_${dimension[1] ?? ''}_)`)
  expect(changed).toMatch(new RegExp(`sizes? (\\d, )*${dimension[2] ?? ''}`))
})
