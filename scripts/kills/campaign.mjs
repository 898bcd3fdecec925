// Kills a training program at drawn moments, starts it again on another number of ranks, and compares what it computes with a run that nobody disturbs.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundledCommand, bundledFile } from '../bundled.mjs'
import { random } from './random.mjs'

const PROGRAM = bundledFile('scripts/kills/program.mjs')

/** Runs the program once. */
function start({ backend, size, folder, steps, way, plan }) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [bundledCommand, 'run', '-n', String(size), '--backend', backend, PROGRAM, folder, String(steps), way], {
      env: { ...process.env, TENSORFX_TEST_KILL: JSON.stringify(plan) },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let text = ''
    child.stderr.on('data', (chunk) => (text += String(chunk)))
    const late = setTimeout(() => child.kill('SIGKILL'), 120_000)
    child.on('close', (code) => {
      clearTimeout(late)
      resolve({ code, text })
    })
  })
}

const logOf = (folder) =>
  existsSync(join(folder, 'log.jsonl'))
    ? readFileSync(join(folder, 'log.jsonl'), 'utf8')
        .split('\n')
        .flatMap((line) => (line.endsWith('}') ? [JSON.parse(line)] : []))
    : []

const finalOf = (folder) => JSON.parse(readFileSync(join(folder, 'final.json'), 'utf8')).flat()

/** The largest difference of two lists of numbers, relative to their size. */
const difference = (a, b) =>
  a.length === b.length ? Math.max(...a.map((value, i) => Math.abs(value - b[i]) / Math.max(1, Math.abs(b[i])))) : Number.POSITIVE_INFINITY

/** The moment of a kill, drawn. */
function drawPlan(next, draw, size, steps) {
  const rank = Math.floor(draw() * size)
  const step = Math.min(steps - 1, next + Math.floor(draw() * 2))
  const kind = draw()
  if (kind < 0.3) return { kind: 'backward', rank, step }
  // A rank's own file takes six calls; the first rank's manifest, and the older checkpoints that go, more.
  return { kind: 'file', rank, step, call: 1 + Math.floor(draw() * (rank === 0 ? 18 : 6)) }
}

/**
 * Kills the program `kills` times, and lets it end. Returns what was wrong, in words: an empty list if nothing was.
 */
export async function killAndResume({ kills, seed, backends, way, steps = 12, sizes = [1, 2, 3, 4], say = () => {} }) {
  const draw = random(seed)
  const pick = (list) => list[Math.floor(draw() * list.length)]
  const findings = []
  const kinds = {}
  const root = mkdtempSync(join(tmpdir(), 'tensorfx-kills-'))
  try {
    const calm = mkdtempSync(join(root, 'calm-'))
    const undisturbed = await start({ backend: 'threads', size: 1, folder: calm, steps, way, plan: {} })
    if (undisturbed.code !== 0) return { findings: [`the undisturbed run failed: ${undisturbed.text}`], killed: 0, kinds }
    const losses = new Map(logOf(calm).flatMap(({ step, loss }) => (step === undefined ? [] : [[step, loss]])))
    const expected = finalOf(calm)
    let killed = 0
    while (killed < kills && findings.length < 5) {
      const folder = mkdtempSync(join(root, 'run-'))
      for (let attempts = 0; attempts < 4 * steps; attempts++) {
        const before = logOf(folder)
        // A program that was killed before it could say what it had saved is known by where the next one resumed.
        const saved = Math.max(0, ...before.flatMap((line) => line.saved ?? line.resumes ?? []))
        const size = pick(sizes)
        const backend = pick(backends)
        const plan = killed < kills ? drawPlan(saved, draw, size, steps) : {}
        const { code, text } = await start({ backend, size, folder, steps, way, plan })
        const log = logOf(folder).slice(before.length)
        const at = `seed ${seed}, ${backend} on ${size}, ${JSON.stringify(plan)}`
        const resumed = log.find((line) => line.resumes !== undefined)?.resumes
        // The manifest may be there although the program did not live to say so.
        if (resumed === undefined) findings.push(`${at}: the program did not start: ${text}`)
        else if (resumed !== saved && resumed !== saved + 1) findings.push(`${at}: resumed at ${resumed}, but ${saved} was saved`)
        for (const { step, loss } of log)
          if (step !== undefined && !(Math.abs(loss - losses.get(step)) < 1e-9))
            findings.push(`${at}: the loss of step ${step} is ${loss}, not ${losses.get(step)}`)
        if (code === 137) {
          killed++
          kinds[plan.kind] = (kinds[plan.kind] ?? 0) + 1
          say(`${killed}: ${at}: resumed at ${resumed}`)
          if (!/killed by signal SIGKILL/.test(text)) findings.push(`${at}: nothing says that a rank was killed: ${text}`)
        } else if (code !== 0) findings.push(`${at}: ended with ${code}: ${text}`)
        if (code === 0 || findings.length > 0) break
      }
      if (findings.length > 0) break
      const far = difference(finalOf(folder), expected)
      if (!(far < 1e-9)) findings.push(`seed ${seed}: the parameters at the end differ by ${far}`)
    }
    return { findings, killed, kinds }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
