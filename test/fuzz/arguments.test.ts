// One pass of fuzz:arguments over the public surface. What it finds becomes a test of its own.
import { expect, test, vi } from 'vitest'
import { fuzzArguments } from '../../scripts/fuzz/arguments.mjs'
import { loadSurface } from '../../scripts/fuzz/surface.mjs'

const entries: Readonly<Record<string, () => Promise<unknown>>> = {
  tensorfx: () => import('tensorfx'),
  nn: () => import('tensorfx/nn'),
  optim: () => import('tensorfx/optim'),
  func: () => import('tensorfx/func'),
  autograd: () => import('tensorfx/autograd'),
  ops: () => import('tensorfx/ops'),
  dispatch: () => import('tensorfx/dispatch'),
  fx: () => import('tensorfx/fx'),
  'fx/passes': () => import('tensorfx/fx/passes'),
  'fx/json': () => import('tensorfx/fx/json'),
  'fx/viewer': () => import('tensorfx/fx/viewer'),
  'fx/experimental': () => import('tensorfx/fx/experimental'),
  compile: () => import('tensorfx/compile'),
  library: () => import('tensorfx/library'),
  aot: () => import('tensorfx/aot'),
  inductor: () => import('tensorfx/inductor'),
  interop: () => import('tensorfx/interop'),
  debug: () => import('tensorfx/debug'),
  kernels: () => import('tensorfx/kernels'),
  pytree: () => import('tensorfx/pytree'),
  rewriter: () => import('tensorfx/rewriter'),
  distributed: () => import('tensorfx/distributed'),
  'distributed/fsdp': () => import('tensorfx/distributed/fsdp'),
  'distributed/checkpoint': () => import('tensorfx/distributed/checkpoint'),
}

test('every public function refuses absurd arguments with an error of tensorfx, and makes no impossible tensor', async () => {
  for (const name of ['log', 'warn', 'error', 'info'] as const) vi.spyOn(console, name).mockImplementation(() => undefined)
  const { library, reset } = await loadSurface((entry) => entries[entry]?.() ?? Promise.reject(new Error(entry)))
  const { functions, findings } = await fuzzArguments(library, { seed: 1, rounds: 1, reset })
  vi.restoreAllMocks()
  expect(functions).toBeGreaterThan(2400)
  expect(findings.map(({ text, what }) => `${text}: ${what}`)).toEqual([])
}, 600_000)
