// What Grafana's application registers for its libraries before anything is drawn: the options that every field has,
// and the transformations. Their working is the libraries' own; the editors are never shown here.
import {
  booleanOverrideProcessor,
  dataLinksOverrideProcessor,
  displayNameOverrideProcessor,
  FieldColorModeId,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  stringOverrideProcessor,
  thresholdsOverrideProcessor,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
  type FieldConfigPropertyItem,
} from '@grafana/data';

type Process = FieldConfigPropertyItem['process'];

const NoEditor = () => null;
const OF_EVERY_FIELD: Record<string, Process> = {
  unit: unitOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  fieldMinMax: booleanOverrideProcessor,
  decimals: numberOverrideProcessor,
  displayName: displayNameOverrideProcessor,
  color: identityOverrideProcessor,
  noValue: stringOverrideProcessor,
  links: dataLinksOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  filterable: booleanOverrideProcessor,
} as Record<string, Process>;
const DEFAULTS: Record<string, unknown> = {
  color: { mode: FieldColorModeId.Thresholds },
  mappings: [],
};

/** An option of fields: `process` makes its value from what the dashboard says. */
export function option(path: string, process: Process, defaultValue: unknown): FieldConfigPropertyItem {
  return {
    id: path,
    path,
    name: path,
    defaultValue,
    process,
    editor: NoEditor,
    override: NoEditor,
    shouldApply: () => true,
  };
}

export function fillRegistries(): void {
  standardFieldConfigEditorRegistry.setInit(() =>
    Object.entries(OF_EVERY_FIELD).map(([path, process]) => option(path, process, DEFAULTS[path]))
  );
  standardTransformersRegistry.setInit(() =>
    [...new Map(Object.values(standardTransformers).map((found) => [found.id, found])).values()].map((found) => ({
      id: found.id,
      name: found.name,
      transformation: () => Promise.resolve(found),
      editor: NoEditor,
      imageDark: '',
      imageLight: '',
    }))
  );
}
