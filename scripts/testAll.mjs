// npm run test:all [-- --full]: what `npm test` leaves out. Tables with many cases of one path through the code run a tenth, another one each day, unless all are asked for.
// Ends with the share of each part, and with the tests of all parts.
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

/** Runs a script of package.json, and shows what it prints. Resolves to its exit code and its last counts. */
function run(script) {
  return new Promise((resolve) => {
    const child = spawn('npm', ['run', '-s', script], {
      env: { ...process.env, ...(values.full ? { TENSORFX_FULL: '1' } : {}) },
      stdio: ['inherit', 'pipe', 'inherit'],
    })
    let end = ''
    child.stdout.on('data', (data) => {
      process.stdout.write(data)
      end = (end + String(data)).slice(-2000)
    })
    child.on('close', (code) => {
      const [, passed = '0', failed = '0'] = [...end.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1) ?? []
      resolve({ code, passed: Number(passed), failed: Number(failed) })
    })
  })
}

const shares = []
const total = { passed: 0, failed: 0 }
for (const [what, script] of parts) {
  const began = performance.now()
  console.log(`== ${what}: npm run ${script}`)
  // oxlint-disable-next-line no-await-in-loop -- each part has all cores
  const { code, passed, failed } = await run(script)
  shares.push(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}${code === 0 ? '' : ': FAILED'}`)
  total.passed += passed
  total.failed += Math.max(failed, code === 0 ? 0 : 1)
  if (code !== 0) process.exitCode = 1
}
console.log(`\n${shares.join('\n')}\n${total.passed} passed, ${total.failed} failed`)
