// Which tests run for a mutant: those that reach it, the room's own before others and fast ones before slow ones, as far as the budget goes.

/** Folders of tests that are about a room, by the start of its files' paths. Rooms without a row: the folder of the same name. */
const own = [
  ['src/module/', ['test/nn/']],
  ['src/pytree/', ['test/fx/']],
  ['src/provenance/', ['test/fx/']],
  ['src/protocol/', ['test/fx/', 'test/ops/']],
  ['src/errors/', ['test/ops/', 'test/fx/']],
  ['src/dynamo/', ['test/fuzz/compile.test.ts']],
  ['src/aot/', ['test/fuzz/compile.test.ts']],
  ['src/kernels/wgsl/', ['test/webgpu/']],
  ['src/gpu/', ['test/webgpu/']],
  ['src/inductor/webgpu/', ['test/webgpu/']],
]

function foldersOf(file) {
  const [, folders] = own.find(([start]) => file.startsWith(start)) ?? []
  return [`test/${file.split('/')[1]}/`, ...(folders ?? [])]
}

/** How many hits an endless loop needs to be found out, beyond those that the unchanged code has. */
export const HIT_FACTOR = 100

/** What runs of a mutant's tests in the shared processes: so many, of so many milliseconds together, since each is repeated for every mutant. */
const SHARED_TESTS = 60
const SHARED_MS = 5000

/** The tests for the shared processes: only those that reach the mutant, the room's own first. `{ id, specs }` as {@link planTests}. */
export function planShared(mutant, coverage, file) {
  const folders = foldersOf(file)
  const isOwn = (test) => folders.some((folder) => test.file.startsWith(folder))
  const reaching = coverage.tests.filter((test) => test.hits[mutant.id] !== undefined)
  reaching.sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)) || a.ms - b.ms)
  const specs = {}
  let ms = 0
  for (const test of reaching.slice(0, SHARED_TESTS)) {
    if (ms + test.ms > SHARED_MS) continue
    ms += test.ms
    ;(specs[test.file] ??= []).push(test.id)
  }
  return { id: mutant.id, specs }
}

/** `{ id, hitLimit, ms, specs: { file: [test ids] } }`; no specs if no test reaches the mutant. */
export function planTests(mutant, coverage, file, budgetSeconds) {
  const folders = foldersOf(file)
  const isOwn = (test) => folders.some((folder) => test.file.startsWith(folder))
  const isFixed = coverage.fixed[mutant.id] !== undefined
  // Code that runs while modules load may matter to every test: the room's own run, reached or not.
  const reaching = coverage.tests.filter((test) => test.hits[mutant.id] !== undefined || (isFixed && isOwn(test)))
  reaching.sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)) || a.ms - b.ms)
  const specs = {}
  let ms = 0
  let hits = coverage.fixed[mutant.id] ?? 0
  for (const test of reaching) {
    if (ms > 0 && ms + test.ms > budgetSeconds * 1000) continue
    ms += test.ms
    hits += test.hits[mutant.id] ?? 0
    ;(specs[test.file] ??= []).push(test.id)
  }
  return { id: mutant.id, hitLimit: hits * HIT_FACTOR + HIT_FACTOR, ms, specs }
}
