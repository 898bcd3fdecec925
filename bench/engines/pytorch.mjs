// PyTorch in a process of its own, which takes its turns when it is told to.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** Starts PyTorch on a number of threads; `python` is the interpreter that has it. */
export async function startPyTorch(python, threads = 1) {
  const child = spawn(python, [fileURLToPath(new URL('pytorch.py', import.meta.url)), String(threads)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, OMP_NUM_THREADS: String(threads), MKL_NUM_THREADS: String(threads) },
  })
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async () => {
    const { value, done } = await answers.next()
    if (done) throw new Error(`${python} ended: is PyTorch installed there?`)
    return JSON.parse(value)
  }
  const ask = (message) => {
    child.stdin.write(`${JSON.stringify(message)}\n`)
    return answer()
  }
  const version = await answer()
  return {
    version,
    /** A row's candidate; null where the row has no Python. */
    async prepare({ pytorch, inputs }) {
      if (pytorch === undefined) return null
      const { setup = '', run } = pytorch
      const given = Object.fromEntries(Object.entries(inputs).map(([name, { shape, below }]) => [name, { shape, below }]))
      await ask({ setup, run, inputs: given })
      return { seconds: (times) => ask({ times }) }
    },
    stop: () => child.kill(),
  }
}
