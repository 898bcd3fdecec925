// node coverage.mjs WORK TESTS FILES…: runs the tests once on the instrumented sources and writes WORK/coverage.json: the tests with their times, and the hits of
// mutants by test. Hits outside of tests (while modules load) are `fixed`. TESTS is a JSON list of paths: the tests in them run, or all if it is empty.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { mutationVitest, root } from './vitest.mjs'

const [work, testPaths, ...files] = process.argv.slice(2)
const paths = JSON.parse(testPaths).map((path) => join(root, path))
const isWanted = ({ moduleId }) =>
  paths.length === 0 || paths.some((path) => moduleId === path || moduleId.startsWith(path.endsWith(sep) ? path : path + sep))
// 50 seconds of whole models through fx: they add nothing for the rooms below it that faster tests do not check.
const exclude = files.some((file) => /^src\/(fx|module)\//.test(file)) ? [] : ['test/fx/samples/**']
const vitest = await mutationVitest(work, { workers: 2, exclude })
vitest.provide('mutant', null)
const { testModules, unhandledErrors } = await vitest.runTestSpecifications((await vitest.globTestSpecifications()).filter(isWanted))

const tests = []
const failed = new Set()
for (const module of testModules) {
  const file = relative(root, module.moduleId)
  if (module.errors().length > 0) console.log(`${file} does not run without mutants: ${module.errors()[0].message}`)
  for (const test of module.children.allTests()) {
    const { state } = test.result()
    if (state === 'passed') tests.push({ id: test.id, file, name: test.fullName })
    else if (state === 'failed') failed.add(`${file} > ${test.fullName}`)
  }
}
for (const name of failed) console.log(`fails without mutants, and is left out: ${name}`)
for (const error of unhandledErrors) console.log(`without mutants: ${String(error)}`)

const fixed = {}
const perTest = {}
const times = {}
for (const name of readdirSync(work).filter((n) => n.startsWith('coverage-'))) {
  const part = JSON.parse(readFileSync(join(work, name), 'utf8'))
  for (const [id, hits] of Object.entries(part.fixed)) fixed[id] = (fixed[id] ?? 0) + hits
  Object.assign(perTest, part.perTest)
  Object.assign(times, part.times)
}
const reached = tests.filter(({ id }) => perTest[id] !== undefined)
writeFileSync(
  join(work, 'coverage.json'),
  JSON.stringify({ tests: tests.map((t) => ({ ...t, ms: times[t.id] ?? 0, hits: perTest[t.id] ?? {} })), reached: reached.length, fixed }),
)
await vitest.close()
process.exit(0)
