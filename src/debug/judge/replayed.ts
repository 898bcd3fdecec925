// A backend whose results are awaited, under a judge that does not wait. What it asks for the first time ends the run; when the answer is there the judge runs again from the start, up to the next question.
import type { Backend, CompileAsync } from '../../dynamo/index.ts'
import { getRngState, setRngState } from '../../tensor/index.ts'
import { isolatedInputs } from '../runs/isolated.ts'

type Answer<T> = { readonly value: T } | { readonly thrown: unknown }

/** Questions of one kind, and the answers that are known. */
class Answers<T> {
  readonly #known: Answer<T>[] = []
  readonly #wait: (pending: Promise<void>) => void
  #at = 0

  /** `wait` is told of an answer that is not known yet. */
  constructor(wait: (pending: Promise<void>) => void) {
    this.#wait = wait
  }

  restart(): void {
    this.#at = 0
  }

  /** The answer to the next question. Throws if it is not known yet, or an error. */
  ask(make: () => Promise<T>): T {
    const known = this.#known[this.#at++]
    if (known === undefined) {
      const answer = make().then(
        (value): Answer<T> => ({ value }),
        (thrown: unknown): Answer<T> => ({ thrown }),
      )
      this.#wait(answer.then((one) => void this.#known.push(one)))
      throw new Error('the results of a graph have to be awaited')
    }
    if ('thrown' in known) throw known.thrown
    return known.value
  }
}

/** Runs `judge` with a backend that stands for `compile`, until it has all answers; returns what it returned then. It must ask for the same in each run. */
export async function replayed<T>(compile: CompileAsync, judge: (backend: Backend) => Promise<T>): Promise<T> {
  let pending: Promise<void> | null = null
  const wait = (answer: Promise<void>): void => void (pending = answer)
  const [graphs, results] = [new Answers<Awaited<ReturnType<CompileAsync>>>(wait), new Answers<readonly unknown[]>(wait)]
  const open = (): void => {
    if (pending !== null) throw new Error('the results of a graph before this one have to be awaited')
  }
  const backend: Backend = (gm, inputs) => {
    open()
    const run = graphs.ask(async () => compile(gm, isolatedInputs(inputs)))
    return (...values: readonly unknown[]) => {
      open()
      const given = isolatedInputs(values)
      // Judges change results, to see who else has them.
      return isolatedInputs(results.ask(async () => run(...given)))
    }
  }
  const state = getRngState()
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one run after the other
    const result = await judge(backend)
    if (pending === null) return result
    // oxlint-disable-next-line no-await-in-loop -- as above
    await pending
    pending = null
    graphs.restart()
    results.restart()
    setRngState(state)
  }
}
