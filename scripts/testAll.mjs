// npm run test:all [-- --full]: what `npm test` leaves out. Tables with many cases of one path through the code run a tenth, another one each day, unless all are asked for.
// Ends with the share of each part, what failed, and the tests of all parts.
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { full: { type: 'boolean', default: false } } })

/** The parts: what they are, and their command. */
const parts = [
  ['worlds, drawn programs, processes', 'test:long'],
  ['memory and tensors on a checked heap', 'test:heap'],
  ['the built package', 'test:built'],
  ['pages in a browser', 'test:browser'],
]

/** Runs a script of package.json, and shows what it prints. Resolves to its exit code, its last counts, and the lines that say what failed. */
function run(script) {
  return new Promise((resolve) => {
    const child = spawn('npm', ['run', '-s', script], {
      env: { ...process.env, ...(values.full ? { TENSORFX_FULL: '1' } : {}) },
      stdio: ['inherit', 'pipe', 'inherit'],
    })
    let end = ''
    child.stdout.on('data', (data) => {
      process.stdout.write(data)
      end = (end + String(data)).slice(-20_000)
    })
    child.on('close', (code) => {
      const [, passed = '0', failed = '0'] = [...end.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1) ?? []
      resolve({ code, passed: Number(passed), failed: Number(failed), failures: end.match(/^FAILED .*$/gm) ?? [] })
    })
  })
}

const shares = []
const failures = []
const total = { passed: 0, failed: 0 }
for (const [what, script] of parts) {
  const began = performance.now()
  console.log(`== ${what}: npm run ${script}`)
  // oxlint-disable-next-line no-await-in-loop -- each part has all cores
  const part = await run(script)
  shares.push(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}${part.code === 0 ? '' : ': FAILED'}`)
  failures.push(...part.failures)
  total.passed += part.passed
  total.failed += Math.max(part.failed, part.code === 0 ? 0 : 1)
  if (part.code !== 0) process.exitCode = 1
}
console.log(`\n${[...shares, ...failures].join('\n')}\n${total.passed} passed, ${total.failed} failed`)
