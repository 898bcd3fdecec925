// The attributes of layers that a backend needs to lower them, by their classes. PyTorch's torch.fx.passes.param_fetch.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkCount, isModule } from '../../../protocol/index.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { Module, getAttribute, isLibraryLayer } from '../../../module/index.ts'
import { GraphModule } from '../../run/graphModule.ts'

/** Which attributes of a class are fetched. */
export interface ModuleFetchEntry {
  /** The latest version of the class (its `_version`, 1 if it has none) that the entry knows. */
  readonly version: number
  /** The names of the attributes, in order. */
  readonly attributes: readonly string[]
  /** The name under which a layer of a version has an attribute. Default {@link defaultMatching}. */
  readonly matching?: (name: string, targetVersion: number) => string
}

/** The name of an attribute in every version. PyTorch's default_matching. */
export const defaultMatching = (name: string, _targetVersion: number): string => name

/** What is known about layers. The keys are the names of the library's layers; add classes of your own as keys. PyTorch's module_fetch_book. */
export const moduleFetchBook: Map<string | object, ModuleFetchEntry> = new Map<string | object, ModuleFetchEntry>([
  ['Linear', { version: 1, attributes: ['weight', 'bias'] }],
  ['Conv2d', { version: 1, attributes: ['weight', 'bias', 'kernelSize', 'stride', 'padding', 'dilation', 'groups'] }],
  ['BatchNorm2d', { version: 2, attributes: ['weight', 'bias', 'runningMean', 'runningVar', 'eps'] }],
  ['AdaptiveAvgPool2d', { version: 1, attributes: [] }],
  ['MaxPool2d', { version: 1, attributes: ['kernelSize', 'stride', 'padding', 'dilation', 'ceilMode'] }],
  ['ReLU', { version: 1, attributes: ['inplace'] }],
])

/**
 * The attributes of a layer by their names, after `name`, the name of its class. PyTorch's extract_attrs_for_lowering.
 * @throws ArgumentError if {@link moduleFetchBook} does not have the class, or only older versions of it.
 */
export function extractAttrsForLowering(module: Module): Record<string, unknown> {
  checkCount('extractAttrsForLowering', arguments, 1)
  checkArgument(isModule(module), 'extractAttrsForLowering', 'module', 'a Module', module)
  const { name } = module.constructor
  const entry = moduleFetchBook.get(module.constructor) ?? (isLibraryLayer(module) ? moduleFetchBook.get(name) : undefined)
  if (entry === undefined)
    throw new ArgumentError(
      `extractAttrsForLowering: ${name} is not in moduleFetchBook yet; add it: moduleFetchBook.set(${name}, { version: 1, attributes: ['…'] }).`,
    )
  const version = Number(getAttribute(module, '_version') ?? 1)
  if (entry.version < version)
    throw new ArgumentError(
      `extractAttrsForLowering: moduleFetchBook has version ${entry.version} of ${name}, but the module has version ${version}; update the entry.`,
    )
  const matching = entry.matching ?? defaultMatching
  return { name, ...Object.fromEntries(entry.attributes.map((attribute) => [attribute, getAttribute(module, matching(attribute, version))])) }
}

/**
 * Notes in `meta.attrs_for_lowering` of every call_module node the attributes of its layer. Goes into child GraphModules, whose calls get no note. PyTorch's
 * lift_lowering_attrs_to_nodes, which sets `node.attrs_for_lowering`.
 * @throws ArgumentError as {@link extractAttrsForLowering} does.
 */
export function liftLoweringAttrsToNodes(gm: GraphModule): void {
  checkCount('liftLoweringAttrsToNodes', arguments, 1)
  checkGraphModule('liftLoweringAttrsToNodes', gm)
  const modules = [gm]
  for (const owner of modules)
    for (const node of owner.graph.findNodes({ op: 'call_module' })) {
      const child = owner.attribute(node.target)
      if (child instanceof GraphModule) modules.push(child)
      else if (child instanceof Module) node.meta['attrs_for_lowering'] = extractAttrsForLowering(child)
    }
}
