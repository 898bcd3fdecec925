// Matrix product against the machine's limit, on one thread: a loop of independent 128-bit multiplications and additions in registers.
import './oneThread.mjs'
import { torch } from 'tensorfx'
import { ModuleBuilder } from 'tensorfx/kernels'
import { fastest, sideBySide } from '../examples/demo/terminal.mjs'

const CHAINS = 12
const STEPS = 200_000

/** A function of two numbers that repeats sum = sum * factor + term on CHAINS vectors at once. */
function multiplyAddLoop() {
  const module = new ModuleBuilder()
  const f = module.function(['i32', 'f32'], ['f32'], 'run')
  const sums = Array.from({ length: CHAINS }, () => f.local('v128'))
  const factor = f.local('v128')
  f.get(1)
  f.op('f32x4.splat')
  f.set(factor)
  f.loop((again) => {
    for (const sum of sums) {
      f.get(factor)
      f.get(factor)
      f.op('f32x4.mul')
      f.get(sum)
      f.op('f32x4.add')
      f.set(sum)
    }
    f.get(0)
    f.i32Const(1)
    f.op('i32.sub')
    f.tee(0)
    f.brIf(again)
  })
  f.get(sums[0])
  for (const sum of sums.slice(1)) {
    f.get(sum)
    f.op('f32x4.add')
  }
  f.lane('f32x4.extract_lane', 0)
  return new WebAssembly.Instance(new WebAssembly.Module(module.finish())).exports.run
}

/** GFLOP/s of torch.mm on 512 by 512 matrices, and of the multiply-add loop, measured in turns; the fastest round of each, as a limit asks. */
export function measureGemm(size = 512) {
  const a = torch.randn([size, size])
  const b = torch.randn([size, size])
  const loop = multiplyAddLoop()
  // Disposed, so that the next round writes to the same memory: on new memory the system's first touch of each page is timed too, up to 10 us each.
  const [mm, peak] = torch.noGrad(() => sideBySide([() => a.mm(b).dispose(), () => loop(STEPS, 1e-9)], 60, fastest))
  return { gflops: (2 * size ** 3) / (mm * 1e6), limit: (STEPS * CHAINS * 8) / (peak * 1e6) }
}
