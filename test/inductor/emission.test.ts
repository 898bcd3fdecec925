// What compiling a program costs, kernel by kernel: all of a ResNet-18's training step, forward and backward. In milliseconds: npm run bench:emission.
import { expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { installVerifier } from '../../src/kernels/run/compile.ts'
import { kernelCacheStats, verifyKernel } from '../../src/kernels/index.ts'
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
    // Sizes of its own: kernels that another test has compiled are not verified again.
    const scores = compile(new ResNet18({ classes: 13 }))(torch.randn([2, 3, 72, 72]))
    nn.functional.crossEntropy(scores, torch.randint(0, 13, [2])).backward()
  } finally {
    installVerifier(verifyKernel)
  }
  const compiled = kernels.filter(({ name }) => name.startsWith('fused_'))
  expect(compiled.length).toBeGreaterThan(60)
  const large = compiled.map((kernel) => ({ name: kernel.name, bytes: emitKernel(kernel).length })).filter(({ bytes }) => bytes > MOST_BYTES)
  expect(large).toEqual([])
  const [emitting, printing] = [emitKernel, printKernel].map((run) => median(compiled.map((kernel) => fastest(() => run(kernel)))))
  expect(emitting).toBeLessThan(MOST_TIMES * (printing ?? NaN))
})

test('a kernel is compiled once, wherever it is in a graph and in whichever graph', () => {
  const tower = (layers: number): ((x: Tensor, w: Tensor) => Tensor) =>
    compile((x: Tensor, w: Tensor) => {
      let at = x
      for (let i = 0; i < layers; i++) at = at.mm(w).relu()
      return at
    })
  const [x, w] = [torch.randn([37, 41]), torch.randn([41, 41])]
  tower(1)(x, w)
  const { compiled } = kernelCacheStats()
  const result = tower(5)(x, w)
  expect(kernelCacheStats().compiled).toBe(compiled)
  let expected = x
  for (let i = 0; i < 5; i++) expected = expected.mm(w).relu()
  expect(torch.allclose(result, expected, { rtol: 1e-4, atol: 1e-4 })).toBe(true)
})
