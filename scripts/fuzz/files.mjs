// npm run fuzz:files -- 10000 [seed] [--format name] [--from index]: reads that many mutants of each format that comes from outside, with the built package.
//
// A mutant must be read, or refused with an error of tensorfx, within a second and 64 MB plus ten times its size; nothing of it may run, change a prototype, or open
// a file. The mutants are read in a child process, so that one that never ends is found too. A finding is printed with what makes it again, made smaller, and written
// to test/goldens/fuzz-files, where it is a test from then on.
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { formats } from './files/formats.mjs'
import { fuzz, kindOf, minimize } from './files/judge.mjs'

const root = new URL('../../', import.meta.url)
const goldens = new URL('test/goldens/fuzz-files/', root)
/** A child that computes for so long, and reports nothing, hangs. */
const HANG_MS = 60_000
const CHUNK = 10_000
const MAX_FILES_PER_KIND = 1

/** Everything that the formats use, from dist. */
export async function builtApi() {
  const at = (name) => import(new URL(`dist/${name}.js`, root).href)
  const names = [
    'index',
    'entries/interop',
    'entries/core',
    'entries/fx/json',
    'entries/fx/viewer',
    'entries/dispatch',
    'entries/debug',
    'interop/stateDict',
  ]
  const parts = (...modules) => Promise.all(modules.map(at)).then((found) => Object.assign({}, ...found))
  const [front, ...rest] = await Promise.all(names.map(at))
  const fsdp = await at('entries/distributed/fsdp')
  const data = await parts('entries/data', 'data/npy', 'data/idx')
  const training = await parts(...['load', 'parts', 'save', 'byRanks', 'folder', 'team'].map((name) => `checkpoint/${name}`))
  await (await at('entries/distributed')).initProcessGroup({ backend: 'single' })
  return Object.assign({}, ...rest.toReversed(), front, { fsdp, data, training })
}

async function child() {
  const api = await builtApi()
  console.warn = () => {}
  process.on('message', async ({ format, count, seed, from }) => {
    const kinds = new Map()
    const onFinding = (finding) => {
      const kind = kindOf(finding.problem)
      const known = kinds.get(kind) ?? 0
      kinds.set(kind, known + 1)
      const { index, problem } = finding
      const bytes = known < MAX_FILES_PER_KIND ? minimize(api, finding) : null
      process.send({ finding: { index, problem, bytes: bytes === null ? null : Buffer.from(bytes).toString('base64') } })
    }
    const onProgress = (index) => process.send({ progress: index })
    process.send({ figures: await fuzz(api, format, { count, seed, from, onFinding, onProgress }) })
  })
}

/** Milliseconds that a process has computed, where the system tells (Linux); otherwise those that have passed. On a busy machine a child may wait for long. */
function computedMs(pid) {
  try {
    const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13)
    return (Number(user) + Number(system)) * 10
  } catch {
    return performance.now()
  }
}

/** Reads a chunk of mutants in a child. */
function chunk(format, seed, from, count, report) {
  return new Promise((resolve, reject) => {
    const worker = fork(fileURLToPath(import.meta.url), ['--child'], { execArgv: ['--max-old-space-size=1024'] })
    let at = from
    let timer = null
    let computed = 0
    const hung = () => {
      if (computedMs(worker.pid) - computed < HANG_MS * 0.9) return again()
      worker.kill('SIGKILL')
      report({ index: at, problem: `one of the mutants from ${at} to ${at + 99} never ends`, bytes: null })
      resolve(null)
    }
    const again = () => {
      clearTimeout(timer)
      timer = setTimeout(hung, HANG_MS)
    }
    const wait = () => {
      computed = computedMs(worker.pid)
      again()
    }
    wait()
    worker.on('message', ({ progress, finding, figures }) => {
      wait()
      if (progress !== undefined) at = progress
      if (finding !== undefined) report(finding)
      if (figures !== undefined) {
        clearTimeout(timer)
        worker.removeAllListeners('exit')
        worker.kill()
        resolve(figures)
      }
    })
    worker.on('exit', (code, signal) => {
      clearTimeout(timer)
      if (signal === 'SIGKILL') return
      report({ index: at, problem: `the process ended (${signal ?? code}) at one of the mutants from ${at} to ${at + 99}`, bytes: null })
      resolve(null)
    })
    worker.on('error', reject)
    worker.send({ format, count, seed, from })
  })
}

async function main() {
  const { values, positionals } = parseArgs({
    options: { format: { type: 'string' }, from: { type: 'string', default: '0' } },
    allowPositionals: true,
  })
  if (!existsSync(new URL('dist/index.js', root))) throw new Error('There is no dist/. Run npm run build first.')
  const count = Number(positionals[0] ?? 2000)
  const seed = Number(positionals[1] ?? 1)
  if (!Number.isInteger(count) || !Number.isInteger(seed)) throw new Error('usage: npm run fuzz:files -- COUNT [SEED] [--format NAME] [--from INDEX]')
  const names = values.format === undefined ? Object.keys(formats) : [values.format]
  let findings = 0
  for (const format of names) {
    if (formats[format] === undefined) throw new Error(`there is no format ${format}; known are ${Object.keys(formats).join(', ')}`)
    const start = performance.now()
    const total = { accepted: 0, refused: 0, findings: 0, slowest: 0, largest: 0 }
    const report = ({ index, problem, bytes }) => {
      findings++
      console.log(`${format} seed ${seed} mutant ${index}: ${problem}`)
      if (bytes === null) return
      mkdirSync(goldens, { recursive: true })
      const data = Buffer.from(bytes, 'base64')
      const file = new URL(`${format}-${createHash('sha1').update(data).digest('hex').slice(0, 10)}.bin`, goldens)
      writeFileSync(file, data)
      console.log(`  ${data.length} bytes: ${fileURLToPath(file)}`)
    }
    const first = Number(values.from)
    for (let from = first; from < first + count; from += CHUNK) {
      const figures = await chunk(format, seed, from, Math.min(CHUNK, first + count - from), report)
      if (figures === null) continue
      for (const key of ['accepted', 'refused', 'findings']) total[key] += figures[key]
      for (const key of ['slowest', 'largest']) total[key] = Math.max(total[key], figures[key])
    }
    const { accepted, refused, slowest, largest } = total
    console.log(
      `${format}: seed ${seed}, ${count} mutants in ${Math.round((performance.now() - start) / 1000)} s: ${accepted} read, ${refused} refused, ${total.findings} wrong; ` +
        `slowest ${Math.round(slowest)} ms, most memory ${(largest / 1e6).toFixed(1)} MB`,
    )
  }
  process.exitCode = findings === 0 ? 0 : 1
}

await (process.argv.includes('--child') ? child() : main())
