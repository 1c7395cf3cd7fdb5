// How many fell into each bucket over time. Grafana's own heatmap is on no registry, so this one is plain: a cell a
// bucket and step, over an axis in the unit of the panel, with Grafana's own buckets and words.
import {
  dateTimeFormat,
  FieldType,
  formattedValueToString,
  getValueFormat,
  identityOverrideProcessor,
  PanelPlugin,
  type DataFrame,
  type PanelProps,
} from '@grafana/data';
import type { Options } from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import { useTheme2 } from '@grafana/ui';

import { option } from '../registries';
import { hasValue } from '../values';
import { NoData } from './noData';

const LEFT = 64;
const BOTTOM = 22;
const TICKS = 5;

function Heatmap({ data, options, fieldConfig, width, height, timeRange, timeZone }: PanelProps<Options>) {
  const theme = useTheme2();
  const [frame] = data.series;
  if (!frame || !hasValue(data.series)) {
    return <NoData fieldConfig={fieldConfig} />;
  }
  const [from, to] = [timeRange.from.valueOf(), timeRange.to.valueOf()];
  const x = (time: number) => LEFT + ((time - from) / (to - from)) * (width - LEFT);
  const rows = rowsOf(frame);
  const tall = (height - BOTTOM) / rows.length;
  const most = Math.max(...rows.flatMap((row) => row.values.map((value) => value ?? 0)));
  const step = stepOf(frame);
  const axis = { fill: theme.colors.text.primary, fontSize: 12 };
  const labelled = Math.ceil(18 / tall);
  const ticks = Array.from({ length: TICKS }, (_, place) => from + ((place + 0.5) * (to - from)) / TICKS);
  return (
    <svg width={width} height={height}>
      {rows.flatMap((row, place) =>
        row.values.map((value, at) =>
          value && value > (options.filterValues?.le ?? 0) ? (
            <rect
              key={`${row.name} ${at}`}
              x={x(row.times[at] - step)}
              y={height - BOTTOM - (place + 1) * tall}
              width={Math.max(x(row.times[at]) - x(row.times[at] - step) - 1, 1)}
              height={Math.max(tall - 1, 1)}
              fill={theme.visualization.getColorByName('blue')}
              opacity={0.15 + 0.85 * Math.sqrt(value / most)}
            />
          ) : null
        )
      )}
      {rows.map((row, place) =>
        place % labelled ? null : (
          <text
            key={row.name}
            x={LEFT - 6}
            y={height - BOTTOM - place * tall - tall / 2 + 4}
            textAnchor="end"
            {...axis}
          >
            {edge(row.name, options.yAxis.unit)}
          </text>
        )
      )}
      {ticks.map((time) => (
        <text key={time} x={x(time)} y={height - 4} textAnchor="middle" {...axis}>
          {dateTimeFormat(time, { format: 'HH:mm:ss', timeZone })}
        </text>
      ))}
    </svg>
  );
}

interface Row {
  name: string;
  times: number[];
  values: (number | null)[];
}

function rowsOf(frame: DataFrame): Row[] {
  const times: number[] = frame.fields.find((field) => field.type === FieldType.time)?.values ?? [];
  const counts = frame.fields.filter((field) => field.type === FieldType.number);
  return counts.map((field) => ({ name: field.config.displayNameFromDS ?? field.name, times, values: field.values }));
}

function stepOf(frame: DataFrame): number {
  return frame.fields.find((field) => field.type === FieldType.time)?.config.interval ?? 1000;
}

function edge(name: string, unit?: string): string {
  return Number.isFinite(Number(name)) ? formattedValueToString(getValueFormat(unit)(Number(name))) : name;
}

export const heatmap = new PanelPlugin<Options>(Heatmap).useFieldConfig({
  useCustomConfig: (builder) => {
    builder.addCustomEditor(option('scaleDistribution', identityOverrideProcessor, { type: 'linear' }) as never);
  },
});
