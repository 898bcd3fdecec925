// A run in which twelve things go wrong or slow, each on a line that ends in a comment with its name: the report of the run has to name that line.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { compile, config, nn, torch } from 'tensorfx'

const quietly = (fn) => {
  const { warn, error } = console
  Object.assign(console, { warn: () => {}, error: () => {} })
  try {
    return fn()
  } catch (failure) {
    return failure
  } finally {
    Object.assign(console, { warn, error })
  }
}

function breaks(x) {
  const y = torch.relu(x)
  const limit = y.sum().item() > 1 ? 1 : 2 // line: break
  return y.mul(limit)
}

const scaled = (x) => torch.tanh(x.mul(2)).sum()

class Switch extends nn.Module {
  isOn = true
  forward(x) {
    const y = torch.sigmoid(x)
    return this.isOn ? torch.cos(y) : torch.sin(y) // line: attribute
  }
}

function refused(x) {
  const y = torch.exp(x)
  const columns = y.sum(0)
  return columns.add(y.mul(3).sum(1)) // line: refused fusion
}

function slow(x, w) {
  const y = torch.tanh(x)
  return y.matmul(w).relu() // line: slow kernel
}

function peak(x, w) {
  const wide = x.matmul(w) // line: memory peak
  return torch.softmax(wide, 1).matmul(w.t()).sum()
}

function fails(x) {
  return torch.relu(x).add(1) // line: failing backend
}

function falls(x) {
  return torch.cumsum(x.mul(3), 0).add(1) // line: fallback
}

function misses(x) {
  return torch.erf(x.mul(x)).sub(0.25).atan() // line: cache miss
}

const reshaped = (x) => torch.exp(x).mul(x)

function drifts(x) {
  return torch.sqrt(x.abs().add(1)) // line: drift
}

/** Runs all of it. `folder`: where the debugger writes its scripts. */
export function runSituations(folder) {
  const broken = compile(breaks)
  broken(torch.ones([4, 4]))
  broken(torch.ones([4, 4]))

  const bySpec = compile(scaled)
  bySpec(torch.ones([2, 4]))
  bySpec(torch.ones([3, 4])) // line: recompile by shape
  bySpec(torch.ones([2, 4], { dtype: 'float64' })) // line: recompile by dtype

  const module = new Switch()
  const switched = compile(module)
  switched(torch.ones([4]))
  module.isOn = false
  switched(torch.ones([4]))

  compile(refused)(torch.ones([8, 8]))
  const multiplied = compile(slow)
  const [x, w] = [torch.ones([384, 384]), torch.ones([384, 384])]
  for (let i = 0; i < 5; i++) multiplied(x, w)
  compile(peak)(torch.ones([64, 16]), torch.ones([16, 4096]))

  const broker = () => {
    throw new Error('this backend has no rule for relu')
  }
  quietly(() => compile(fails, { backend: Object.assign(broker, { backendName: 'broker' }) })(torch.ones([4])))
  compile(falls)(torch.ones([4, 4]))
  compile(misses)(torch.ones([5]))

  const before = config.recompileLimit
  config.recompileLimit = 1
  const limited = compile(reshaped)
  quietly(() => {
    for (let i = 1; i < 6; i++) limited(torch.ones([i])) // line: limit
  })
  config.recompileLimit = before

  const wrong =
    (gm) =>
    (...inputs) =>
      gm.forward(...inputs).map((tensor) => tensor.mul(1.5))
  const { reproAfter, reproLevel, debugDirRoot } = config
  Object.assign(config, { reproAfter: 'dynamo', reproLevel: 4, debugDirRoot: folder })
  quietly(() => compile(drifts, { backend: Object.assign(wrong, { backendName: 'drifting' }) })(torch.ones([4])))
  Object.assign(config, { reproAfter, reproLevel, debugDirRoot })
}

/** The lines by their names. */
export function plantedLines() {
  const lines = readFileSync(fileURLToPath(import.meta.url), 'utf8').split('\n')
  const names = lines.map((line) => / \/\/ line: ([\w ]+)$/.exec(line)?.[1])
  return new Map(names.flatMap((name, i) => (name === undefined ? [] : [[name, i + 1]])))
}
