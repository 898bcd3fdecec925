// npm run fuzz:planted [-- --only text] [--programs N]: faults in what knows of sizes that change, planted into copies of dist one at a time. The fuzzer must find each: a fault that it does not find is one that it would not
// find in the sources either. test/fuzz/planted.test.ts sees that their places are still there.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

/** The faults: the file under src without its ending, a text that is there once, and what stands in its place. `kinds`: of programs, where only few of all have what finds it. */
export const faults = [
  {
    name: 'the rule of a sum of sizes is off by one',
    file: 'symbols/symValues',
    from: 'add: (a, b) => add(a, b),',
    to: 'add: (a, b) => add(a, b, constantOf(1)),',
  },
  {
    name: 'half of a size is rounded up',
    file: 'symbols/symValues',
    from: 'floorDivide: functions.floorDiv,',
    to: 'floorDivide: (a, b) => functions.floorDiv(add(a, b, constantOf(-1)), b),',
  },
  { name: 'a recorded path takes tensors with gaps between their rows', file: 'dynamo/tree/sizes', from: '|| isStrided(tensor) !== strided', to: '' },
  {
    name: 'a recorded path takes sizes that are constants of it',
    file: 'dynamo/tree/sizes',
    from: 'range === null ? sizes[dim] !== recorded[dim] : !isInside',
    to: 'range !== null && !isInside',
  },
  {
    name: 'a kernel takes inputs whose sizes depend on each other in another way',
    file: 'inductor/sized/layouts',
    from: 'if (numberAt(inputs, place) !== valueOf(product, values))',
    to: 'if (false)',
  },
  {
    name: 'a kernel takes sizes of 0 and 1',
    kinds: 'pointwise,views,reductions,sizes,windows',
    file: 'inductor/sized/layouts',
    from: 'if (nth(values, atom) < 2)',
    to: 'if (false)',
  },
  {
    name: 'a number of a kernel has the last of its sizes only',
    file: 'inductor/sized/layouts',
    from: 'value *= values[atom] ?? NaN',
    to: 'value = constant * (values[atom] ?? NaN)',
  },
  {
    name: 'a plan is for another list: sizes of the first dimension are missing',
    file: 'dynamo/tree/sizes',
    from: 'if (dims[dim] !== null)',
    to: 'if (dim > 0 && dims[dim] !== null)',
  },
  { name: 'a plan is for another list: strides are missing', file: 'dynamo/tree/sizes', from: 'if (strided)', to: 'if (false)' },
  {
    name: 'a plan keeps a number that differs from call to call',
    file: 'dynamo/run/sizedPlans',
    from: "typeof input === 'number' && this.#isSteady(i, input)",
    to: 'false',
  },
  {
    name: 'a compiled backward takes sizes for which its guards do not hold',
    file: 'dynamo/compile/sizedJoint',
    from: 'if (failed !== null)',
    to: 'if (false)',
  },
  {
    name: 'a compiled backward has the sizes of the call for which it was made',
    file: 'dynamo/compile/sizedJoint',
    from: 'placeholders.map(({ expr }) => env.valueAt(expr, values))',
    to: 'placeholders.map(({ expr }) => env.hintOf(expr))',
  },
  {
    name: 'a compiled backward is that of another tape',
    file: 'dynamo/compile/sizedJoint',
    from: 'if (!hasSameTape(segment, heads, run))',
    to: 'if (false)',
  },
  {
    name: 'a step takes results that were recorded in a call of other sizes',
    file: 'dynamo/segment/segment',
    from: '= !known.isAsRecorded',
    to: '= false',
  },
  { name: 'a plan reads windows from their beginning', file: 'dynamo/run/planRecorder', from: 'value.offset - tensor.offset', to: '0' },
  {
    name: 'a plan takes the first reader of a new value for what computes it, and lets it read the old one',
    kinds: 'pointwise,inplace,reductions,optimizers',
    file: 'dynamo/run/planRecorder',
    from: 'if (!value.isTemporary)',
    to: 'if (false)',
  },
]

/** Where a fault goes. Throws if its text is not there once. */
export function planted({ name, file, from, to }, source) {
  const parts = source.split(from)
  if (parts.length !== 2)
    throw new Error(`'${name}': '${from}' is ${parts.length - 1} times in ${file}, and must be there once: write down where the fault goes now.`)
  return parts.join(to)
}

/** Runs the fuzzer on a copy of dist with a fault; whether it has found one. */
function isFound(fault, root, programs) {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-planted-'))
  try {
    for (const part of ['dist', 'scripts', 'package.json']) cpSync(join(root, part), join(folder, part), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const file = join(folder, 'dist', `${fault.file}.js`)
    writeFileSync(file, planted(fault, readFileSync(file, 'utf8')))
    const found = spawnSync(
      process.execPath,
      [
        'scripts/fuzz/index.mjs',
        programs,
        '1',
        '--with',
        'dynamic',
        '--stop',
        '1',
        '--as-drawn',
        ...(fault.kinds === undefined ? [] : ['--kinds', fault.kinds]),
      ],
      {
        cwd: folder,
        encoding: 'utf8',
      },
    )
    const [, ran = '?'] = /(\d+) programs in/.exec(found.stdout) ?? []
    const differs = found.stdout.split('\n').find((line) => line.startsWith('// ')) ?? ''
    return found.status === 0
      ? { isFound: false, text: `not found by ${ran} programs` }
      : { isFound: true, text: `found by program ${ran}: ${differs.slice(3) || found.stderr.slice(0, 200)}` }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function main() {
  const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, programs: { type: 'string', default: '1000' } } })
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const chosen = faults.filter(({ name }) => name.includes(values.only))
  let count = 0
  for (const fault of chosen) {
    const result = isFound(fault, root, values.programs)
    if (result.isFound) count++
    console.log(`${result.isFound ? 'found' : 'SILENT'}  ${fault.name}: ${result.text}`)
  }
  console.log(`${count} of ${chosen.length} faults found`)
  process.exitCode = count === chosen.length && count > 0 ? 0 : 1
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) main()
