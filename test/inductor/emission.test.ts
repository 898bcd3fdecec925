// What compiling a program costs, kernel by kernel: all of a ResNet-18's training step, forward and backward. In milliseconds: npm run bench:emission.
import { expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { installVerifier } from '../../src/kernels/run/compile.ts'
import { verifyKernel } from '../../src/kernels/index.ts'
import type { Kernel } from '../../src/kernels/ir/loopIr.ts'
import { printKernel } from '../../src/kernels/ir/print.ts'
import { emitKernel } from '../../src/kernels/emit/emit.ts'

interface Model extends nn.Module {
  forward(images: Tensor): Tensor
}
const { ResNet18 } = (await import(new URL('../../examples/resnet18/model.mjs', import.meta.url).href)) as {
  readonly ResNet18: new (options: { readonly classes: number }) => Model
}

/** Microseconds of CPU time that the fastest of seven runs takes. */
const fastest = (run: () => unknown): number =>
  Math.min(
    ...Array.from({ length: 7 }, () => {
      const start = process.cpuUsage()
      run()
      const { user, system } = process.cpuUsage(start)
      return user + system
    }),
  )

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN

/** The most bytes of a kernel. */
const MOST_BYTES = 8192
/** How many times as long as printing a kernel emitting it may take, in the median: 10 where printing takes 0.05 ms, and emitting half a millisecond. 1 ms is 20. */
const MOST_TIMES = 20

test('kernels of a training step are small, and emitting one takes half a millisecond', () => {
  // compile installs a verifier of its own at its first call.
  compile((x: Tensor) => x.relu())(torch.ones([4]))
  const kernels: Kernel[] = []
  installVerifier((kernel) => void kernels.push(kernel))
  try {
    const scores = compile(new ResNet18({ classes: 10 }))(torch.randn([2, 3, 64, 64]))
    nn.functional.crossEntropy(scores, torch.randint(0, 10, [2])).backward()
  } finally {
    installVerifier(verifyKernel)
  }
  const compiled = kernels.filter(({ name }) => name.startsWith('compiled_graph'))
  expect(compiled.length).toBeGreaterThan(60)
  const large = compiled.map((kernel) => ({ name: kernel.name, bytes: emitKernel(kernel).length })).filter(({ bytes }) => bytes > MOST_BYTES)
  expect(large).toEqual([])
  const [emitting, printing] = [emitKernel, printKernel].map((run) => median(compiled.map((kernel) => fastest(() => run(kernel)))))
  expect(emitting).toBeLessThan(MOST_TIMES * (printing ?? NaN))
})
