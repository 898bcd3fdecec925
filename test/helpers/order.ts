// In which order the files of a run are started. What has a process of its own comes first: a process that files share would end before such a file, and the next file would load the
// sources again. What takes longest comes before the rest, as listed, so that no core is idle at the end. All else is in another order each time: a file that leaves something behind is found.
import { relative } from 'node:path'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification, Vitest } from 'vitest/node'
import { slowest } from '../suites.ts'
import { hashOf } from './rotation.ts'

export class Order extends BaseSequencer {
  readonly #seed: number

  constructor(context: Vitest) {
    super(context)
    this.#seed = context.config.sequence.seed ?? Date.now()
    console.log(`Files run in the order of --sequence.seed ${this.#seed}`)
  }

  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ project, moduleId }: TestSpecification): readonly number[] => [
      Number(project.config.isolate === false),
      slowest.findIndex((name) => moduleId.endsWith(name)) + 1 || slowest.length + 1,
      hashOf(`${this.#seed} ${relative(this.ctx.config.root, moduleId)}`),
    ]
    const placed = files.map((file) => ({ file, at: place(file) }))
    return placed.toSorted((a, b) => firstDifference(a.at, b.at)).map(({ file }) => file)
  }
}

/** How two lists of numbers of the same length compare, the first number first. */
const firstDifference = (a: readonly number[], b: readonly number[]): number => a.map((x, i) => x - (b[i] ?? 0)).find((d) => d !== 0) ?? 0
