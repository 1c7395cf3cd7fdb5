// Rows, by Grafana's own table.
import { cacheFieldDisplayNames, identityOverrideProcessor, PanelPlugin, type PanelProps } from '@grafana/data';
import type { Options } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import { TableNG } from '@grafana/ui/unstable';

import { useMemo } from 'react';

import { option } from '../registries';
import { NoData } from './noData';

const LOOKS: Record<string, unknown> = {
  align: 'auto',
  width: undefined,
  minWidth: undefined,
  filterable: false,
  cellOptions: { type: 'auto' },
  inspect: false,
  hideFrom: { viz: false },
};

function Rows({ data, options, fieldConfig, width, height, timeRange }: PanelProps<Options>) {
  useMemo(() => cacheFieldDisplayNames(data.series), [data.series]);
  const frame = data.series[options.frameIndex ?? 0];
  if (!frame?.fields.length) {
    return <NoData fieldConfig={fieldConfig} />;
  }
  return (
    <TableNG
      data={frame}
      width={width}
      height={height}
      noHeader={!options.showHeader}
      sortBy={options.sortBy}
      cellHeight={options.cellHeight as never}
      fieldConfig={fieldConfig}
      noValue={fieldConfig.defaults.noValue}
      timeRange={timeRange}
      structureRev={data.structureRev}
      enableVirtualization={false}
      resizable
    />
  );
}

export const table = new PanelPlugin<Options>(Rows).useFieldConfig({
  useCustomConfig: (builder) => {
    for (const [path, value] of Object.entries(LOOKS)) {
      builder.addCustomEditor(option(path, identityOverrideProcessor, value) as never);
    }
  },
});
