// npm run test:all [-- --full]: what `npm test` leaves out. Tables with many cases of one path through the code run a tenth, another one each day, unless all are asked for.
// Ends with the share of each part, what failed, and the tests of all parts.
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { full: { type: 'boolean', default: false } } })

/** The parts: what they are, and their command. The parts of a group take about a core each, and run side by side. */
const groups = [
  [['worlds, drawn programs, processes', 'test:long']],
  [['memory and tensors on a checked heap', 'test:heap']],
  [['the built package', 'test:built']],
  [
    ['pages in a browser', 'test:browser'],
    ['the site', 'test:site'],
    ['the packed package', 'check:pack'],
    ['a part of the tests on a GPU', 'test:webgpu:quick'],
  ],
]

/** Runs a script of package.json, and shows at once what it prints if it runs alone. Resolves to its exit code, what it printed, its last counts, and the lines that say what failed. */
function run(script, isAlone) {
  return new Promise((resolve) => {
    const child = spawn('npm', ['run', '-s', script], {
      env: { ...process.env, ...(values.full ? { TENSORFX_FULL: '1' } : {}) },
      stdio: ['inherit', 'pipe', isAlone ? 'inherit' : 'pipe'],
    })
    let text = ''
    const read = (data) => {
      if (isAlone) process.stdout.write(data)
      text += String(data)
    }
    child.stdout.on('data', read)
    child.stderr?.on('data', read)
    child.on('close', (code) => {
      const end = text.slice(-20_000)
      const [, passed = '0', failed = '0'] = [...end.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1) ?? []
      resolve({ code, text, passed: Number(passed), failed: Number(failed), failures: end.match(/^FAILED .*$/gm) ?? [] })
    })
  })
}

const shares = []
const failures = []
const total = { passed: 0, failed: 0 }
/** Runs one part of a group, and counts it. */
async function count([what, script], isAlone) {
  const began = performance.now()
  const title = `== ${what}: npm run ${script}`
  if (isAlone) console.log(title)
  const part = await run(script, isAlone)
  if (!isAlone) console.log(`${title}\n${part.text}`)
  shares.push(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}${part.code === 0 ? '' : ': FAILED'}`)
  failures.push(...part.failures)
  total.passed += part.passed
  total.failed += Math.max(part.failed, part.code === 0 ? 0 : 1)
  if (part.code !== 0) process.exitCode = 1
}
for (const group of groups) {
  // oxlint-disable-next-line no-await-in-loop -- each group has all cores
  await Promise.all(group.map((part) => count(part, group.length === 1)))
}
console.log(`\n${[...shares, ...failures].join('\n')}\n${total.passed} passed, ${total.failed} failed`)
