// The commands of the `tensorfx` program, in one table: reading their words, help and errors all come from it. What a command needs is loaded when it runs.
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import { nearest } from '../protocol/index.ts'
import { VERSION } from '../version.ts'
import { JSON_WORD, helpOf, helpOfAll, optionsOf, parseLine } from './line.ts'
import type { Command, Output, Result, Words } from './line.ts'
import { profileGroups, profileColumns } from '../debug/profile/columns.ts'
import { PLAIN } from './terminal.ts'

const SAVED_GRAPH = {
  name: 'FILE',
  text: 'a saved graph: .json (graphToJson), .safetensors (saveGraphModule), or a folder with graph.safetensors and inputs.safetensors',
}

/** The script of a command that runs one. */
const SCRIPT = {
  name: 'SCRIPT',
  text: 'the script (.mjs, .js), run in this process as if Node had been started with it. A default export that is a function is called with the words',
}

/** All commands. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'ops',
    forms: [
      { words: '[TEXT]', text: 'lists the operators whose name, here or in PyTorch, contains the text' },
      {
        words: '--missing',
        text: "lists the functions of PyTorch's torch, the methods of its tensors and the operators of its core ATen that tensorfx lacks, and why",
      },
      { words: '--symbolic', text: 'lists the operators that have no rule for symbolic sizes' },
    ],
    operands: [{ name: 'TEXT', text: 'a part of a name; default: all operators' }],
    options: [
      { name: '--missing', value: null, text: 'what is not there' },
      { name: '--symbolic', value: null, text: 'what a trace with symbolic sizes refuses' },
    ],
    ending: '',
    run: async (line, { terminal }) => (await import('./ops.ts')).listOperators(line, terminal),
  },
  {
    name: 'compare',
    forms: [{ words: 'FOLDER --backends A,B [options]', text: 'runs a saved graph node by node on several backends' }],
    operands: [
      { name: 'FOLDER', text: 'holds graph.safetensors (saveGraphModule) and inputs.safetensors (writeSafetensors: input_0, input_1, ...)' },
    ],
    options: [
      { name: '--backends', value: 'A,B', text: 'eager, inductor, aot_eager, onnxruntime, or a module and its export: ./mine.mjs#mine' },
      { name: '--tol', value: 'N', type: { kind: 'positive number' }, text: 'the largest error; default 1e-4' },
      { name: '--reference', value: 'KIND', type: { kind: 'choice', of: ['float64', 'eager'] }, text: 'float64 (default) or eager' },
      { name: '--gradients', value: null, text: 'also compares the gradients of parameters and of inputs of floating-point numbers' },
      {
        name: '--worst-input',
        value: 'N',
        type: { kind: 'whole number', least: 1 },
        text: 'also searches for the inputs with the largest error, in N tries',
      },
      {
        name: '--minify',
        value: 'OUT',
        text: 'writes to the folder OUT the smallest graph on which the first backend that is not right still fails, and one that is right does not',
      },
    ],
    ending: 'The exit code is 1 unless every backend is right, and 2 if the command is wrong.',
    run: async (line, output) => (await import('./compare.ts')).compare(line, output),
  },
  {
    name: 'minify',
    forms: [{ words: 'MODEL --run COMMAND [options]', text: 'shrinks a saved graph while a command fails' }],
    operands: [{ ...SAVED_GRAPH, name: 'MODEL' }],
    options: [
      {
        name: '--run',
        value: 'COMMAND',
        text: `is run by the shell for each candidate, with the candidate's path as its last argument (also in TENSORFX_CANDIDATE). A candidate
fails, and is kept, if the exit code is not 0; the command succeeds (0) when what you look for is gone`,
      },
      { name: '--exit-code', value: 'N', type: { kind: 'whole number', least: 1 }, text: 'only this exit code is the failure' },
      {
        name: '--inputs',
        value: 'FILE',
        text: `inputs (safetensors: input_0, input_1, ...): the graph is cut on the values that it computes from them, and they are shrunk too.
Those of a candidate are in TENSORFX_CANDIDATE_INPUTS. Without inputs the graph is not run here, and cut by its structure alone`,
      },
      { name: '--out', value: 'PATH', text: "where the result is written; default MODEL with '.min' before the end of its name" },
      {
        name: '--timeout',
        value: 'N',
        type: { kind: 'number', least: 0.001 },
        text: 'seconds for one run; default 60. A candidate that takes longer does not count as failing',
      },
      {
        name: '--max-runs',
        value: 'N',
        type: { kind: 'whole number', least: 1 },
        text: 'at most this many runs; default 1000. Then the smallest graph so far is written',
      },
      { name: '--quiet', value: null, text: 'no progress lines' },
    ],
    ending: 'The exit code is 0 if a graph was written, 1 if the command does not tell graphs apart, 2 if the options are wrong.',
    run: async (line, output) => (await import('./minify/command.ts')).runMinify(line, output),
  },
  {
    name: 'run',
    forms: [{ words: '-n N [options] FILE.mjs [words for the program]', text: 'starts a program as N ranks of tensorfx/distributed' }],
    operands: [
      {
        name: 'FILE.mjs',
        text: 'the program. A default export that is a function is called with the words, unless the program has joined its world before',
      },
    ],
    options: [
      { name: '-n', value: 'N', type: { kind: 'whole number', least: 1 }, text: 'the number of ranks' },
      {
        name: '--backend',
        value: 'KIND',
        type: { kind: 'choice', of: ['mpi', 'threads'] },
        text: 'mpi: each rank is a process (needs mpirun and koffi); threads: each is a thread of one process. Default: mpi where that works',
      },
      {
        name: '--restarts',
        value: 'N',
        type: { kind: 'whole number', least: 0 },
        text: `starts all ranks again after a failure, at most N times; default 0. restartCount() tells the program, which resumes from its last
checkpoint`,
      },
    ],
    ending: `Each line of output begins with its rank. Signals go to the ranks. When a rank fails, the others are ended.
The exit code is that of the rank that failed first, 128 + N after signal N, and 2 if the command is wrong.`,
    passesOn: 'afterOperand',
    run: async (line, output) => (await import('./run/command.ts')).runProgramAsRanks(line, output),
  },
  {
    name: 'repro pack',
    forms: [
      {
        words: 'FILE.mjs [--out FILE.tgz] [--backend ./mine.mjs#mine]',
        text: "writes one file with the script, its storages, the backend's modules, versions and settings",
      },
    ],
    operands: [],
    options: [
      { name: '--out', value: 'FILE.tgz', text: "default: the script's name with .tgz, in the working directory" },
      { name: '--backend', value: 'M#NAME', text: 'the backend of a script that has to be told of it' },
    ],
    ending: '',
    run: async (line) => (await import('./repro/command.ts')).packRepro(line),
  },
  {
    name: 'repro run',
    forms: [
      {
        words: 'FILE.tgz|FILE.mjs [--dir FOLDER] [words for the script, e.g. minify]',
        text: 'unpacks it into a new folder and runs its script with this tensorfx. This runs code: read a script from someone else before you run it',
      },
    ],
    operands: [],
    options: [{ name: '--dir', value: 'FOLDER', text: 'an empty or new folder to unpack to; default: a new one among the temporary files' }],
    ending: 'The exit code of run is that of the script; 2 if the command is wrong or the archive cannot be read.',
    passesOn: true,
    run: async (line, { print }) => (await import('./repro/command.ts')).runRepro(line, print),
  },
  {
    name: 'info',
    forms: [{ words: 'WEIGHTS', text: 'lists the tensors in a file of weights: dtypes, shapes, sizes, metadata' }],
    operands: [
      {
        name: 'WEIGHTS',
        text: '.safetensors, of which only the header is read; .pt, .pth, .bin (torch.save), of which no code runs; or .npz (numpy.savez)',
      },
    ],
    options: [{ name: '--key', value: 'NAME', text: 'where the state dict is in a checkpoint that holds a dict of several things' }],
    ending: '',
    run: async (line, { terminal }) => (await import('./info.ts')).describeWeights(line, terminal),
  },
  {
    name: 'graph',
    forms: [{ words: 'FILE [--text|--table|--code|--svg|--html]', text: 'prints a saved graph' }],
    operands: [SAVED_GRAPH],
    options: [
      { name: '--text', value: null, text: 'its nodes, a line each (default)' },
      { name: '--table', value: null, text: 'its nodes as a table' },
      { name: '--code', value: null, text: 'the generated code' },
      { name: '--svg', value: null, text: 'a drawing (needs @hpcc-js/wasm-graphviz)' },
      { name: '--html', value: null, text: 'the page that tensorfx view writes' },
    ],
    ending: '',
    run: async (line) => (await import('./graph.ts')).printGraph(line),
  },
  {
    name: 'view',
    forms: [{ words: 'FILE [--out PAGE] [--open]', text: 'writes a page that shows a saved graph, or the tensors of a file of weights' }],
    operands: [{ ...SAVED_GRAPH, text: `${SAVED_GRAPH.text}; or weights: .safetensors, or .pt, .pth and .bin (torch.save), of which no code runs` }],
    options: [
      { name: '--out', value: 'PAGE', text: 'default: the name of the file with .html, beside it' },
      { name: '--before', value: 'FILE', text: 'an earlier version of the graph: the page shows what changed since' },
      {
        name: '--profile',
        value: 'FILE',
        text: 'what tensorfx profile --json has written, or graphCosts() of a profile as JSON: times are shown as heat',
      },
      { name: '--open', value: null, text: 'opens the page in the browser' },
    ],
    ending: '',
    run: async (line, output) => (await import('./graph.ts')).viewGraph(line, output),
  },
  {
    name: 'diff',
    forms: [{ words: 'A B', text: 'lists the nodes that were added, removed and changed from one saved graph to another' }],
    operands: [{ ...SAVED_GRAPH, name: 'A, B' }],
    options: [],
    ending: 'Nodes are matched by name; values of weights are not compared. The exit code is 1 if the graphs differ.',
    run: async (line, { terminal }) => (await import('./graph.ts')).diffGraphs(line, terminal),
  },
  {
    name: 'report',
    forms: [{ words: 'DIR [--diff OTHER] [--out PAGE] [--open]', text: 'writes a page that shows a run which was traced' }],
    operands: [{ name: 'DIR', text: 'the folder of the trace: TENSORFX_TRACE=DIR node program.mjs, or trace({ dir }) of tensorfx/debug/trace' }],
    options: [
      { name: '--diff', value: 'OTHER', text: 'the folder of a later run: the page shows both, and what differs' },
      {
        name: '--process',
        value: 'N',
        type: { kind: 'whole number', least: 1 },
        text: 'the number of the process; default: the one that started last',
      },
      { name: '--out', value: 'PAGE', text: 'default: report.html in DIR' },
      { name: '--open', value: null, text: 'opens the page in the browser' },
      { name: '--chrome', value: null, text: 'also writes trace.json beside the page, for chrome://tracing and ui.perfetto.dev' },
    ],
    ending: 'Prints what was found. The exit code is 0 whatever that is, and 2 if there is no trace.',
    run: async (line, output) => (await import('./report.ts')).reportRun(line, output),
  },
  {
    name: 'explain',
    forms: [
      {
        words: 'SCRIPT [words for the script]',
        text: 'runs a script, and says for each compiled function its graphs, graph breaks with your line, and recompiles',
      },
    ],
    operands: [SCRIPT],
    options: [],
    ending: 'The exit code is 1 if the script fails. With --json, what the script prints goes to standard error.',
    passesOn: 'afterOperand',
    hasJson: true,
    run: async (line, output) => (await import('./explain.ts')).explainScript(line, output),
  },
  {
    name: 'profile',
    forms: [
      {
        words: '[options] SCRIPT [words for the script]',
        text: 'runs a script, and says how long each operator, kernel of a compiled function, module or node of a graph took',
      },
    ],
    operands: [SCRIPT],
    options: [
      {
        name: '--by',
        value: 'GROUP',
        type: { kind: 'choice', of: profileGroups },
        text: 'a row for each operator and kernel (default), operator and inputShape, kernel, module, or node',
      },
      { name: '--sort', value: 'COLUMN', type: { kind: 'choice', of: profileColumns }, text: 'the column to sort by; default selfTime' },
      { name: '--limit', value: 'N', type: { kind: 'whole number', least: 1 }, text: 'at most this many rows' },
      { name: '--chrome', value: 'FILE', text: 'also writes a trace for chrome://tracing and Perfetto' },
      { name: '--flame', value: 'FILE', text: 'also writes a flame graph, a page (.html)' },
    ],
    ending: 'The exit code is 1 if the script fails. With --json, what the script prints goes to standard error.',
    passesOn: 'afterOperand',
    hasJson: true,
    run: async (line, output) => (await import('./profile.ts')).profileScript(line, output),
  },
  {
    name: 'docs',
    forms: [{ words: '[FOLDER] [options]', text: 'writes pages about a project in TypeScript or JavaScript, from its sources' }],
    operands: [{ name: 'FOLDER', text: 'the folder of the project; default: the working directory' }],
    options: [
      { name: '--out', value: 'DIR', text: 'where the pages are written; default: docs/site in FOLDER' },
      {
        name: '--format',
        value: 'KINDS',
        text: 'some of html, md, json, with commas between; default html,json. model.json and llms.txt are always written',
      },
      { name: '--include', value: 'GLOBS', text: "the files to document, such as 'lib/**'; default: src/**, or all sources that are not built" },
      { name: '--exclude', value: 'GLOBS', text: 'files to leave out' },
      { name: '--tests', value: 'GLOBS', text: 'the tests; default: folders test, tests, __tests__ and spec, and names with .test. or .spec.' },
      {
        name: '--source-url',
        value: 'URL',
        text: 'the address of a line, such as https://example.com/{path}#L{line}; default: pages of the sources are written',
      },
      { name: '--public', value: null, text: 'only what package.json exports, and the modules that declare it; default: everything, marked' },
      {
        name: '--from',
        value: 'FILE',
        text: 'makes the pages from a model.json, without a compiler; sources are read from FOLDER, unless they have an address',
      },
      { name: '--check', value: null, text: 'writes nothing, and compares what was written' },
    ],
    ending: `Needs the API of TypeScript 5 or 6, but with --from. Lists public names without a doc comment, links that lead nowhere, modules without a comment at their head, and errors that docs do not name.
The exit code is 0 if the pages were written; with --check it is 1 if pages are out of date, a public name has no doc comment, or a link leads nowhere; 2 if the project cannot be read.`,
    run: async (line, output) => (await import('./docs.ts')).documentSources(line, output),
  },
  {
    name: 'flow',
    forms: [
      {
        words: 'FUNCTION [options]',
        text: 'writes a page that walks through a call of a function: diagrams, and a card with its source for each function',
      },
      { words: '--check', text: 'finds the cards whose functions have changed since their walks were written' },
    ],
    operands: [{ name: 'FUNCTION', text: 'src/file.ts#name, src/file.ts#Class.method, or a name that only one function has' }],
    options: [
      { name: '--observe', value: 'COMMAND', text: 'runs a command in the folder of the project, and records which functions call which' },
      { name: '--project', value: 'FOLDER', text: 'the folder of the project; default: the working directory' },
      { name: '--out', value: 'DIR', text: 'where walks are written; default: docs/flows in FOLDER' },
      { name: '--format', value: 'KINDS', text: 'some of html, md, json, with commas between; default html,json' },
      { name: '--depth', value: 'N', type: { kind: 'whole number', least: 1 }, text: 'calls deeper than this are left out; default 12' },
      { name: '--nodes', value: 'N', type: { kind: 'whole number', least: 2 }, text: 'the functions of the first diagram; default 22' },
      { name: '--stop', value: 'NAMES', text: 'functions, folders or files whose calls are not followed' },
      { name: '--skip', value: 'NAMES', text: 'functions, folders or files to leave out' },
      { name: '--pin', value: 'NAMES', text: 'functions to draw, however small' },
      { name: '--include', value: 'GLOBS', text: 'the files of the project; default: as tensorfx docs' },
      { name: '--exclude', value: 'GLOBS', text: 'files to leave out' },
      { name: '--tests', value: 'GLOBS', text: 'the tests' },
      { name: '--source-url', value: 'URL', text: 'the address of a line; default: pages of the sources are written' },
      { name: '--check', value: null, text: 'writes nothing, and compares the cards of all walks' },
      { name: '--accept', value: null, text: 'the text by hand in NAME.prose.md is right for the functions as they are' },
    ],
    ending: `The command of --observe must run the project's own files in Node, built with source maps if they are built.
The exit code is 0 if the page was written or no card is stale, 1 if one is, 2 if the function, the project or the command is wrong.`,
    run: async (line, output) => (await import('./flow.ts')).walkFunction(line, output),
  },
  {
    name: 'doctor',
    forms: [{ words: '', text: 'shows what this machine offers, and what the environment variables say' }],
    operands: [],
    options: [],
    ending: 'The exit code is 1 if there is a problem: something that is missing, an unknown variable, or one with a wrong value.',
    run: async (line, { terminal }) => (await import('./doctor/command.ts')).examine(line, terminal),
  },
]

const HELP = ['--help', '-h']

/** Of the words after a command's name, those that may ask for its help: others are for someone else. */
function ownWords(words: readonly string[], { options, passesOn = false }: Words): readonly string[] {
  if (passesOn === false) return words
  if (passesOn === true) return words.slice(0, 1)
  const takesValue = (word: string | undefined): boolean => options.some(({ name, value }) => name === word && value !== null)
  const operand = words.findIndex((word, i) => !word.startsWith('-') && !takesValue(words[i - 1]))
  return operand < 0 ? words : words.slice(0, operand)
}

/** Runs the program with these words: what it prints at its end, and its exit code. */
export async function runTensorfx(words: readonly string[], output: Output): Promise<Result> {
  const { terminal = PLAIN } = output
  const [first, second] = words
  if (first === '--version') return { text: VERSION, code: 0 }
  const all = helpOfAll(VERSION, COMMANDS, terminal)
  if (first === undefined || HELP.includes(first)) return { text: all, code: 0 }
  if (first === 'help') return second === undefined ? { text: all, code: 0 } : runTensorfx([...words.slice(1), '--help'], output)
  const group = COMMANDS.filter(({ name }) => name.split(' ')[0] === first)
  if (group.length === 0) {
    const near = nearest(first, [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0] ?? '')), 'help', '--version', '--help'])
    const error = `unknown command '${words.filter((word) => !HELP.includes(word) && word !== JSON_WORD).join(' ')}'.${hint(near)}`
    return { text: words.includes(JSON_WORD) ? JSON.stringify({ error }, null, 2) : `${error}\n${all}`, code: 2, data: { error } }
  }
  const command = group.find(({ name }) => name === first || name === `${first} ${second ?? ''}`)
  const help = helpOf(command === undefined ? group : [command], terminal)
  const rest = words.slice(command?.name.split(' ').length ?? 1)
  const asks = command === undefined ? rest : ownWords(rest, command)
  if (asks.some((word) => HELP.includes(word))) return { text: help, code: 0 }
  const wantsJson = command !== undefined && optionsOf(command).some(({ name }) => name === JSON_WORD) && asks.includes(JSON_WORD)
  try {
    if (command === undefined) return { text: second === undefined ? help : unknownOf(first, second, group), code: 2 }
    // A command that takes words says what it is for where there are none.
    if (rest.length === 0 && command.operands.length > 0 && command.forms.every(({ words: form }) => !form.startsWith('[')))
      return { text: help, code: 2 }
    const result = await command.run(parseLine(rest, command), wantsJson ? { ...output, terminal: PLAIN } : output)
    return wantsJson ? { ...result, text: JSON.stringify(result.data, null, 2) } : result
  } catch (error) {
    if (!(error instanceof TensorfxError)) throw error
    const data = { error: error.message }
    return { text: wantsJson ? JSON.stringify(data, null, 2) : `tensorfx ${first}: ${error.message}\n${help}`, code: 2, data }
  }
}

const hint = (near: string | null): string => (near === null ? '' : ` Did you mean '${near}'?`)

/** A word that is not a command of a group. Throws ArgumentError. */
function unknownOf(first: string, word: string, group: readonly Command[]): never {
  const near = nearest(
    word,
    group.map(({ name }) => name.slice(first.length + 1)),
  )
  throw new ArgumentError(`unknown command '${word}'.${hint(near)}`)
}
