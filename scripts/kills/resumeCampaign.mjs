// Kills a training program at drawn moments, starts it again, and compares what it computes with a run that nobody disturbs: all numbers must be the same.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundledCommand, bundledFile } from '../bundled.mjs'
import { random } from './random.mjs'

const PROGRAM = bundledFile('scripts/kills/trainer.mjs')

/** The ranks of the training that is divided. */
const RANKS = 2

/** Kills the processes of a training that still run: trainer.mjs leaves their numbers in its folder. */
function endAll(folder) {
  for (const name of readdirSync(folder))
    if (name.startsWith('process-')) {
      rmSync(join(folder, name))
      try {
        process.kill(Number(name.slice('process-'.length)), 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
}

/** Runs the program once. It is killed `after` so many milliseconds, or where the plan says. */
function start({ training, backend, folder, steps, plan }) {
  return new Promise((resolve) => {
    const program = [PROGRAM, training, folder, String(steps)]
    const args = training === 'fsdp' ? [bundledCommand, 'run', '-n', String(RANKS), '--backend', backend, ...program] : program
    const child = spawn(process.execPath, args, {
      env: { ...process.env, TENSORFX_TEST_KILL: JSON.stringify(plan) },
      stdio: ['ignore', 'ignore', 'pipe'],
      // A group of processes, so that none is left.
      detached: true,
    })
    let text = ''
    let isKilled = false
    child.stderr.on('data', (chunk) => (text += String(chunk)))
    const late = setTimeout(() => {
      isKilled = true
      process.kill(-child.pid, 'SIGKILL')
      // A launcher's ranks are a group of their own. Without it they would end by themselves, but after another step or two.
      endAll(folder)
    }, plan.after ?? 240_000)
    child.on('close', (code, signal) => {
      clearTimeout(late)
      endAll(folder)
      // A launcher of ranks lives on when one was killed, and says so.
      resolve({ code, killed: isKilled || signal === 'SIGKILL' || code === 137, text })
    })
  })
}

const logOf = (folder) =>
  existsSync(join(folder, 'log.jsonl'))
    ? readFileSync(join(folder, 'log.jsonl'), 'utf8')
        .split('\n')
        .flatMap((line) => (line.endsWith('}') ? [JSON.parse(line)] : []))
    : []

/** The moment of a kill, drawn: at a call of the file system while a checkpoint is written, or after some time. `next` is the next step. */
function drawPlan(draw, next, steps, usual) {
  if (draw() < 0.3) return { after: Math.floor(usual * (0.3 + draw())) }
  return { step: Math.min(steps, next + Math.floor(draw() * 4)), call: 1 + Math.floor(draw() * 40), rank: Math.floor(draw() * RANKS) }
}

/**
 * Kills the program `kills` times, and lets it end. `training`: one of trainings.mjs. Returns what was wrong, in words: an empty list if nothing was.
 */
export async function killAndResume({ training, backend = 'threads', kills, seed, steps = 14, say = () => {} }) {
  const draw = random(seed)
  const findings = []
  const root = mkdtempSync(join(tmpdir(), 'tensorfx-resume-'))
  try {
    const calm = mkdtempSync(join(root, 'calm-'))
    const began = performance.now()
    const undisturbed = await start({ training, backend, folder: calm, steps, plan: {} })
    const usual = performance.now() - began
    if (undisturbed.code !== 0) return { findings: [`the undisturbed run failed: ${undisturbed.text}`], killed: 0 }
    const losses = new Map(logOf(calm).flatMap(({ step, loss }) => (step === undefined ? [] : [[step, loss]])))
    const expected = readFileSync(join(calm, 'final.json'), 'utf8')
    let killed = 0
    while (killed < kills && findings.length === 0) {
      const folder = mkdtempSync(join(root, 'run-'))
      for (let attempts = 0; attempts < 5 * steps && findings.length === 0; attempts++) {
        const before = logOf(folder)
        const reached = Math.max(0, ...before.flatMap((line) => line.step ?? []))
        // A process alone is rank 0.
        const drawn = killed < kills ? drawPlan(draw, reached, steps, usual) : {}
        const plan = training === 'fsdp' || drawn.rank === undefined ? drawn : { ...drawn, rank: 0 }
        const outcome = await start({ training, backend, folder, steps, plan })
        const log = logOf(folder).slice(before.length)
        const at = `${training}, seed ${seed}, ${JSON.stringify(plan)}`
        const resumed = log.find((line) => line.resumes !== undefined)?.resumes
        // Every step before the last one was saved.
        if (resumed !== undefined && resumed !== reached && resumed !== reached - 1)
          findings.push(`${at}: resumed at ${resumed}, but ${reached} steps were done`)
        for (const { step, loss } of log)
          if (step !== undefined && loss !== losses.get(step)) findings.push(`${at}: the loss of step ${step} is ${loss}, not ${losses.get(step)}`)
        if (outcome.killed) {
          killed++
          say(`${killed}: ${at}: resumed at ${resumed}`)
        } else if (outcome.code !== 0) findings.push(`${at}: ended with ${outcome.code}: ${outcome.text}`)
        else break
      }
      if (findings.length === 0 && readFileSync(join(folder, 'final.json'), 'utf8') !== expected)
        findings.push(`${training}, seed ${seed}: the parameters at the end differ`)
    }
    return { findings, killed }
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  }
}
